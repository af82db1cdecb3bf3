"""Programs that nobody here wrote judge what the emulator says."""

import json
import re
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pydo
import pytest
from azure.core.exceptions import HttpResponseError

from infra.settings import Settings
from tests.emulators import outside_judges
from tests.emulators.digitalocean import Emulator, judge
from tests.emulators.digitalocean.facts import CALLS, DROPLET, MOMENT
from tests.emulators.digitalocean.replies import Reply, Request
from tests.emulators.digitalocean.routing import ROUTES
from tests.emulators.digitalocean.shapes import Description, faults
from tests.emulators.virtual_clock import VirtualClock

BODY = {"name": "nb-1-a1-x2", "size": "gpu-mi300x1-192gb", "image": "gpu-amd-base", "region": "atl1"}
by_each_description = pytest.mark.parametrize("name", judge.DESCRIPTIONS)
PACKER = {
    "type": "digitalocean",
    "image": "gpu-amd-base",
    "region": "atl1",
    "size": "gpu-mi300x1-192gb",
    "communicator": "none",
    "snapshot_name": "nb-golden",
    "tags": ["run:abc"],
    "state_timeout": "60s",
}


@by_each_description
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v2/droplets", {"droplets": [], "links": {}}),
        ("/v2/droplets", {"droplets": [{"id": 1}], "links": {}, "meta": {"total": 1}}),
        ("/v2/actions/1", {"action": {"id": 1, "status": "finished"}}),
        ("/v2/account", {"account": {"droplet_limit": "25"}}),
    ],
)
def test_the_description_refuses_a_wrong_answer(name: str, path: str, body: object) -> None:
    request = Request("GET", path, {}, {"authorization": "Bearer x"})

    assert judge.violations(request, Reply(200, body), name)


@by_each_description
def test_the_description_refuses_a_wrong_request(name: str) -> None:
    headers = {"authorization": "Bearer x", "content-type": "application/json"}
    request = Request("POST", "/v2/droplets", {}, headers, json.dumps({"name": "nb"}).encode())

    assert [found for found in judge.violations(request, Reply(202, None), name) if "validate_request" in found]


def test_a_violation_fails_whoever_ran_the_emulator(tmp_path: Path) -> None:
    cloud = Emulator(VirtualClock(tmp_path / "clock")).__enter__()
    cloud.state.account["droplet_limit"] = "many"
    cloud.api.answer(Request("GET", "/v2/account", {}, {"authorization": f"Bearer {cloud.token}"}))

    with pytest.raises(AssertionError, match="against the API's description"):
        cloud.__exit__(None, None, None)


DROPLETS = "/v2/droplets"


def exchanged(cloud: Emulator, method: str, path: str, body: object = None) -> Reply:
    """A call as pydo makes it."""
    raw = b"" if body is None else json.dumps(body).encode()
    return cloud.api.answer(Request(method, path, {}, {"authorization": f"Bearer {cloud.token}"}, raw))


def test_without_the_description_facts_judge_every_answer(tmp_path: Path) -> None:
    cloud = Emulator(VirtualClock(tmp_path / "clock"), by_description=False).__enter__()
    droplet = cloud.plant_droplet(foreign=False)
    droplet.status = "splendid"
    exchanged(cloud, "GET", f"{DROPLETS}/{droplet.droplet_id}")

    with pytest.raises(AssertionError, match=r"reply.droplet.status is 'splendid', none of \['active', 'archive'"):
        cloud.__exit__(None, None, None)


def test_a_request_that_a_fault_strikes_is_judged_too(tmp_path: Path) -> None:
    cloud = Emulator(VirtualClock(tmp_path / "clock"), by_description=False).__enter__()
    cloud.fault("POST", DROPLETS, phase="close")
    exchanged(cloud, "POST", DROPLETS, {**BODY, "tags": "nb", "colour": "red"})

    with pytest.raises(AssertionError, match=r"request has 'colour', which is unknown; .*: request.tags is no list"):
        cloud.__exit__(None, None, None)


def test_an_error_is_judged_and_a_refused_request_is_not(tmp_path: Path) -> None:
    with Emulator(VirtualClock(tmp_path / "clock"), by_description=False) as cloud:
        refused = exchanged(cloud, "POST", DROPLETS, {**BODY, "size": 7})
        exchanged(cloud, "DELETE", f"{DROPLETS}/7")

        assert refused.status == 422
        assert cloud.judge.found == []
        cloud.judge.see(Request("GET", f"{DROPLETS}/7", {}, {}), Reply(404, "gone"))
        assert cloud.judge.found == ["GET /v2/droplets/{} 404: reply is no object"]
        cloud.judge.found.clear()


def test_a_call_that_the_facts_lack_is_named(tmp_path: Path) -> None:
    with Emulator(VirtualClock(tmp_path / "clock"), by_description=False) as cloud:
        exchanged(cloud, "GET", "/v2/customers/my/balance")

        assert cloud.judge.unknown == {"GET /v2/customers/my/balance"}


@pytest.mark.parametrize(
    ("value", "kind", "said"),
    [
        ({"a": 1}, {"a": str}, [".a is 1, no <class 'str'>"]),
        ({}, {"a": str, "b?": int}, [" lacks 'a'"]),
        ({"a": True}, {"a": int}, [".a is True, no <class 'int'>"]),
        ({"a": 1}, {"a": float}, []),
        ({"a": None}, {"a": int | None}, []),
        ({"a": None}, {"a": int}, [".a is None, no <class 'int'>"]),
        ({"a": [1, "x"]}, {"a": [int]}, [".a[1] is 'x', no <class 'int'>"]),
        ({"a": "2026-11-21T20:00:00Z"}, {"a": MOMENT}, []),
        ({"a": "yesterday"}, {"a": MOMENT}, [".a is 'yesterday', none of ['a moment']"]),
        ({}, None, [" is {}, no None"]),
    ],
)
def test_a_value_is_compared_with_its_kind(value: object, kind: object, said: list[str]) -> None:
    assert list(faults(value, kind)) == said


@by_each_description
@pytest.mark.parametrize("call", CALLS, ids=" ".join)
def test_the_facts_agree_with_the_description(name: str, call: tuple[str, str]) -> None:
    said = Description(judge.described(name))
    asked, answered = CALLS[call]
    sides = [(asked, said.request(*call)), (answered, said.answer(*call))]

    found = [why for kind, schema in sides if kind and schema for why in said.differences(kind, schema)]

    assert [kind is None for kind, _schema in sides] == [schema is None for _kind, schema in sides]
    # The published one shows this one answer bare; other clients receive it wrapped, as every other action.
    is_bare = (name, call) == ("published", ("POST", "/v2/images/{}/actions"))
    assert found == ([".action is not described"] if is_bare else [])


def test_our_description_has_every_call_that_the_emulator_answers() -> None:
    ours = Description(judge.described("ours"))
    calls = {(route.method, re.sub(r"{\w+}", "{}", route.template)) for route in ROUTES}

    assert calls
    assert [call for call in sorted(calls) if not ours.operation(*call)["responses"]] == []


@by_each_description
def test_a_wrong_fact_is_found(name: str) -> None:
    said = Description(judge.described(name))
    wrong = {"droplet": {**DROPLET, "id": str, "status": frozenset({"new"}), "colour": str, "name": str | None}}
    del wrong["droplet"]["vcpus"]

    found = said.differences(wrong, said.answer("GET", "/v2/droplets/{}") or {})

    assert sorted(found) == [
        ".droplet does not need 'vcpus'",
        ".droplet.colour is not described",
        ".droplet.id is integer, not ['string']",
        ".droplet.name is never null",
        ".droplet.status is one of ['new', 'active', 'off', 'archive']",
    ]


def judge_or_skip(fetch: Callable[[Path], Path]) -> Path:
    try:
        return fetch(Settings().cache)
    except outside_judges.NoJudgeError as error:
        pytest.skip(str(error))


def test_packer_builds_a_snapshot_and_leaves_nothing_else(tmp_path: Path) -> None:
    program = judge_or_skip(outside_judges.packer)
    with Emulator(tls=False, speed=600) as cloud:
        template = {"builders": [PACKER | {"api_token": cloud.token, "api_url": cloud.url}]}
        (tmp_path / "t.json").write_text(json.dumps(template))

        built = subprocess.run(
            [program, "build", "t.json"], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
        )

        assert built.returncode == 0, built.stdout + built.stderr
        assert [image.name for image in cloud.state.images.values() if image.kind == "snapshot"] == ["nb-golden"]
        assert cloud.living() == []
        assert cloud.state.keys == {}


def test_packer_leaves_no_machine_behind_where_off_never_comes(tmp_path: Path) -> None:
    program = judge_or_skip(outside_judges.packer)
    with Emulator(tls=False, speed=600) as cloud:
        cloud.behaviour.ignores_shutdown = True
        impatient = PACKER | {"api_token": cloud.token, "api_url": cloud.url, "state_timeout": "10s"}
        (tmp_path / "t.json").write_text(json.dumps({"builders": [impatient]}))

        built = subprocess.run(
            [program, "build", "t.json"], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
        )

        assert built.returncode != 0
        assert cloud.living() == []
        assert cloud.state.keys == {}


@contextmanager
def prism_before(cloud: Emulator, folder: Path, name: str) -> Iterator[str]:
    """The address of a proxy that lets nothing through that the description does not allow."""
    described = folder / "described.json"
    described.write_text(json.dumps(judge.described(name)))
    program = judge_or_skip(outside_judges.prism)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    argv = [
        str(program),
        "proxy",
        str(described),
        cloud.url,
        "--errors",
        "--port",
        str(port),
        "--host",
        "127.0.0.1",
    ]
    with (folder / "prism.log").open("wb") as log:
        proxy = subprocess.Popen(argv, stdout=log, stderr=log)
    try:
        until = time.monotonic() + 300
        while not is_listening(port):
            assert proxy.poll() is None, (folder / "prism.log").read_text()[-500:]
            assert time.monotonic() < until
            time.sleep(0.2)
        yield f"http://127.0.0.1:{port}"
    finally:
        proxy.kill()
        proxy.wait()


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@by_each_description
def test_prism_lets_a_machine_s_whole_life_through(name: str, tmp_path: Path) -> None:
    clock = VirtualClock(tmp_path / "clock")
    with Emulator(clock, tls=False) as cloud, prism_before(cloud, tmp_path, name) as url:
        client: Any = pydo.Client(cloud.token, endpoint=url, retry_total=0)
        plain = {"enforce_https": False}
        made = client.droplets.create(body=BODY | {"tags": ["nb"]}, **plain)["droplet"]["id"]
        clock.sleep(60)
        client.droplet_actions.post(made, body={"type": "snapshot", "name": "nb-golden"}, **plain)
        clock.sleep(3600)
        seen = client.droplets.list(type="gpus", **plain)["droplets"]
        snapshots = client.snapshots.list(resource_type="droplet", **plain)["snapshots"]
        sizes = client.sizes.list(per_page=200, **plain)["sizes"]
        client.droplets.destroy(made, **plain)
        client.snapshots.delete(snapshots[0]["id"], **plain)

        assert [one["id"] for one in seen] == [made]
        assert len(sizes) == len(cloud.state.sizes)
        cloud.invariant()


@by_each_description
def test_prism_refuses_what_the_description_does_not_allow(name: str, tmp_path: Path) -> None:
    with (
        Emulator(VirtualClock(tmp_path / "clock"), tls=False, by_description=False) as cloud,
        prism_before(cloud, tmp_path, name) as url,
    ):
        client: Any = pydo.Client(cloud.token, endpoint=url, retry_total=0)
        cloud.state.account["status"] = "splendid"

        with pytest.raises(HttpResponseError):
            client.account.get(enforce_https=False)
        assert cloud.judge.found.pop().endswith("is 'splendid', none of ['active', 'locked', 'warning']")
