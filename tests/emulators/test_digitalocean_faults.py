"""What goes wrong with a call, before its effect and after it, and what the real client makes of that."""

import re
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import httpx2
import pydo
import pytest
from azure.core.exceptions import DecodeError, HttpResponseError, ServiceResponseError

from tests.emulators.digitalocean import Emulator
from tests.emulators.virtual_clock import VirtualClock

BODY = {"name": "nb-1-a1-x2", "size": "gpu-mi300x1-192gb", "image": "gpu-amd-base", "region": "atl1"}


@pytest.fixture
def clock(tmp_path: Path) -> VirtualClock:
    return VirtualClock(tmp_path / "clock")


@pytest.fixture
def cloud(clock: VirtualClock) -> Iterator[Emulator]:
    with Emulator(clock) as emulator:
        yield emulator


def client(cloud: Emulator, **more: Any) -> Any:
    settings = {"retry_total": 0, "read_timeout": 300, **more}
    return pydo.Client(cloud.token, endpoint=cloud.url, connection_verify=str(cloud.ca), **settings)


def headers_of(error: HttpResponseError) -> Mapping[str, str]:
    response: Any = error.response
    return cast("Mapping[str, str]", response.headers)


@pytest.mark.parametrize(
    ("phase", "error", "exist"),
    [
        ("before", HttpResponseError, 0),
        ("after", HttpResponseError, 1),
        ("close", ServiceResponseError, 0),
        ("close_after", ServiceResponseError, 1),
        ("silence", ServiceResponseError, 0),
        ("silence_after", ServiceResponseError, 1),
        ("status", HttpResponseError, 0),
        ("truncated", DecodeError, 1),
        ("garbage", DecodeError, 1),
    ],
)
def test_a_fault_strikes_before_or_after_the_effect(
    cloud: Emulator, phase: str, error: type[Exception], exist: int
) -> None:
    cloud.fault("POST", "/v2/droplets", phase=phase, status=503)

    with pytest.raises(error):
        client(cloud, read_timeout=0.5 if error is ServiceResponseError else 300).droplets.create(body=BODY)

    assert len(cloud.living()) == exist
    assert len(cloud.requests("POST", "/v2/droplets")) == 1


def test_an_empty_answer_hides_what_was_created(cloud: Emulator) -> None:
    cloud.fault("POST", "/v2/droplets", phase="empty")

    assert not client(cloud).droplets.create(body=BODY)

    assert len(cloud.living()) == 1


def test_the_nth_call_is_struck_as_often_as_asked(cloud: Emulator) -> None:
    cloud.fault("GET", r"/v2/droplets/\d+", nth=2, times=2, phase="status", status=502)
    droplet_id = client(cloud).droplets.create(body=BODY)["droplet"]["id"]

    heard: list[int | None] = []
    for _ in range(4):
        try:
            client(cloud).droplets.get(droplet_id)
            heard.append(200)
        except HttpResponseError as error:
            heard.append(error.status_code)

    assert heard == [200, 502, 502, 200]


def test_the_default_client_makes_four_droplets_of_one_create(cloud: Emulator) -> None:
    cloud.fault("POST", "/v2/droplets", phase="after", times=-1)

    with pytest.raises(HttpResponseError):
        client(cloud, retry_total=10, retry_backoff_factor=0.01).droplets.create(body=BODY)

    calls = cloud.requests("POST", "/v2/droplets")
    assert len(cloud.living()) == len(calls) == 4
    assert len({call.client_request_id for call in calls}) == 1


def test_a_lie_says_deleted_and_deletes_nothing(cloud: Emulator) -> None:
    droplet_id = client(cloud).droplets.create(body=BODY)["droplet"]["id"]
    cloud.fault("DELETE", r"/v2/droplets/\d+", phase="lie")

    client(cloud).droplets.destroy(droplet_id)

    with pytest.raises(AssertionError, match="goes on billing"):
        cloud.invariant()


def test_a_fault_can_say_when_to_come_back(cloud: Emulator) -> None:
    cloud.fault("GET", "/v2/account", phase="status", status=429, retry_after=7)

    with pytest.raises(HttpResponseError) as caught:
        client(cloud).account.get()

    assert headers_of(caught.value)["retry-after"] == "7"


def test_a_burst_is_refused_with_retry_after(cloud: Emulator, clock: VirtualClock) -> None:
    cloud.api.limiter.per_minute = 5
    shared = client(cloud)
    for _ in range(5):
        shared.account.get()

    with pytest.raises(HttpResponseError) as caught:
        shared.account.get()

    headers = headers_of(caught.value)
    clock.sleep(float(headers["retry-after"]))
    assert shared.account.get()["account"]["status"] == "active"


def test_a_minute_of_the_limits_is_as_short_as_every_other_duration_of_a_fast_cloud(clock: VirtualClock) -> None:
    with Emulator(clock, speed=100) as fast:
        fast.api.limiter.per_minute = 1
        shared = client(fast)
        shared.account.get()

        clock.sleep(0.7)

        assert shared.account.get()["account"]["status"] == "active"


def test_an_empty_hour_is_refused_without_retry_after(cloud: Emulator, clock: VirtualClock) -> None:
    cloud.api.limiter.per_hour = 3
    shared = client(cloud)
    for _ in range(3):
        shared.account.get()

    with pytest.raises(HttpResponseError) as caught:
        shared.account.get()

    headers = headers_of(caught.value)
    assert "retry-after" not in headers
    assert headers["ratelimit-remaining"] == "0"
    clock.sleep(int(headers["ratelimit-reset"]) + 1 - clock.now().timestamp())
    shared.account.get()


def test_listing_keys_has_a_limit_of_its_own(cloud: Emulator) -> None:
    shared = client(cloud)
    for _ in range(10):
        shared.ssh_keys.list()

    with pytest.raises(HttpResponseError) as caught:
        shared.ssh_keys.list()

    assert caught.value.status_code == 429
    shared.account.get()


def test_other_processes_can_plan_faults_and_read_the_ledger(cloud: Emulator) -> None:
    with httpx2.Client(base_url=cloud.url, verify=ssl.create_default_context(cafile=cloud.ca)) as outside:
        fault = {"method": "GET", "path": "/v2/account", "phase": "status", "status": 503}
        outside.post("/__emu/fault", json=fault).raise_for_status()
        struck = outside.get("/v2/account", headers={"authorization": f"Bearer {cloud.token}"})
        client(cloud).droplets.create(body=BODY)
        outside.post("/__emu/jump", json={"seconds": 3600})
        ledger = outside.get("/__emu/ledger").json()
        breaches = outside.get("/__emu/invariant").json()["breaches"]

    assert struck.status_code == 503
    assert [(one["name"], one["ended"]) for one in ledger["intervals"]] == [("nb-1-a1-x2", None)]
    assert ledger["intervals"][0]["usd"] == pytest.approx(2.59, rel=0.001)
    assert re.search("goes on billing", breaches[0])


def test_the_plain_http_mode_answers_alike(clock: VirtualClock) -> None:
    with Emulator(clock, tls=False) as cloud:
        plain = pydo.Client(cloud.token, endpoint=cloud.url, retry_total=0)

        assert plain.account.get(enforce_https=False)["account"]["droplet_limit"] == 25
