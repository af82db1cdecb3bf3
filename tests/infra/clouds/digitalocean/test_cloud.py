"""DigitalOcean by pydo: what only this cloud has; tests/infra/clouds/test_contract.py has what all have."""

import http.client
import json
import logging
import subprocess
import sys
import time
import types
from contextlib import closing
from pathlib import Path

import pytest

from bench.errors import CloudDeniedError, CloudError, CloudRefusedError, LeaseError, LostReplyError
from bench.machine.names import MachineName
from infra.clouds.cloud import MachineOrder
from infra.clouds.digitalocean import dead_man_switch
from infra.clouds.digitalocean.client import Calls
from infra.leases.offers import Choice
from infra.remote.ssh_keys import fingerprint, forget_keys, keys_of, leases_with_keys
from infra.settings import PricedSize
from tests.emulators.virtual_clock import VirtualClock
from tests.infra.rented import DROPLETS, KIND, ONE_DROPLET, Rig


def order(rig: Rig, kind: str = KIND, region: str = "atl1") -> MachineOrder:
    offer = next(one for one in rig.cloud.offers() if (one.kind, one.region) == (kind, region))
    return MachineOrder(MachineName("01k9x", 1, rig.clock.now()), offer)


def test_offers_have_current_prices(rig: Rig) -> None:
    rig.emulator.sell(KIND, usd_per_hour=1.99)

    assert {one.usd_per_hour for one in rig.cloud.offers() if one.kind == KIND} == {1.99}


def test_offers_are_sorted_by_price_and_spot_ones_are_marked(rig: Rig) -> None:
    offers = rig.cloud.offers()

    assert [one.usd_per_hour for one in offers] == sorted(one.usd_per_hour for one in offers)
    assert {one.kind.endswith("-spot") for one in offers if one.is_spot} == {True}


def test_a_size_from_the_settings_is_an_offer_at_its_price(rig: Rig) -> None:
    priced = {"gpu-mi325x1-256gb-contracted": PricedSize(usd_per_hour=2.1, regions=("tor1",))}

    found = [one for one in rig.cloud_with(priced_sizes=priced).offers() if one.kind in priced]

    assert [(one.usd_per_hour, one.region, one.is_available) for one in found] == [(2.1, "tor1", True)]


def test_a_machine_is_created_with_its_name_tags_key_and_user_data(rig: Rig) -> None:
    lease = rig.take()

    droplet = rig.emulator.living("nb")[0]
    keys = keys_of(rig.folder / "keys", lease.lease_id)
    registered = [key.fingerprint for key in rig.emulator.state.keys.values()]
    assert (droplet.name, droplet.region, lease.region) == (lease.name, "atl1", "atl1")
    assert droplet.tags[0] == "nb"
    assert droplet.tags[1] == f"nb-run:{lease.lease_id}"
    assert keys.host_private.read_text().splitlines()[1] in str(droplet.user_data)
    assert registered == [fingerprint(keys.client_public)]


def test_private_keys_have_mode_600_and_are_deleted_with_their_lease(tmp_path: Path) -> None:
    keys = keys_of(tmp_path / "keys", "01k9x")
    modes = {path.stat().st_mode & 0o777 for path in (tmp_path / "keys" / "01k9x").iterdir()}

    assert modes == {0o600}
    assert keys == keys_of(tmp_path / "keys", "01k9x")
    forget_keys(tmp_path / "keys", leases_with_keys(tmp_path / "keys"))
    assert list((tmp_path / "keys").iterdir()) == []


def test_an_incomplete_key_pair_is_created_again(tmp_path: Path) -> None:
    keys_of(tmp_path, "01k9x")
    (tmp_path / "01k9x" / "host.pub").unlink()

    keys = keys_of(tmp_path, "01k9x")

    assert keys.host_public.startswith("ssh-ed25519 ")


def test_a_rented_machine_has_its_public_address(rig: Rig) -> None:
    address = rig.take().address

    assert address == rig.emulator.living("nb")[0].address


def test_plain_machines_are_found_beside_those_with_gpus(rig: Rig) -> None:
    lease = rig.take(choices=(Choice("s-2vcpu-4gb"),), image="ubuntu-24-04-x64")

    assert [one.machine_id for one in rig.cloud.find_ours()] == [lease.machine_id]
    assert [one.machine_id for one in rig.cloud.find(str(lease.name))] == [lease.machine_id]


def test_a_create_call_is_one_post(rig: Rig) -> None:
    rig.emulator.fault("POST", DROPLETS, phase="status", status=500, retry_after=1)

    with pytest.raises(LostReplyError):
        rig.cloud.rent(order(rig))

    assert rig.posts() == 1


def test_a_silent_cloud_is_waited_for_until_the_timeout(rig: Rig) -> None:
    rig.emulator.fault("POST", DROPLETS, phase="silence")
    began = time.monotonic()

    with pytest.raises(LostReplyError):
        rig.cloud.rent(order(rig))

    assert time.monotonic() - began < 60  # the library's own limit is 300


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"image": "no-such-image"}, "invalid image"),
        ({"choices": (Choice("gpu-mi300x9-9gb"),)}, "offers no machine of kind 'gpu-mi300x9-9gb'"),
        ({"regions": ("atl9",)}, "has no region 'atl9', only"),
    ],
)
def test_an_unknown_kind_or_region_is_named_and_nothing_is_rented(
    rig: Rig, fields: dict[str, object], said: str
) -> None:
    with pytest.raises(LeaseError, match=said):
        rig.take(None, **fields)

    assert rig.billing() == []
    assert rig.ledger.open_leases() == []


@pytest.mark.parametrize(
    ("kind", "image"),
    [
        (KIND, "gpu-amd-base"),
        ("gpu-h100x1-80gb", "gpu-h100x1-base"),
        ("gpu-h100x8-640gb", "gpu-h100x8-base"),
        ("s-2vcpu-4gb", "ubuntu-24-04-x64"),
    ],
)
def test_a_machine_without_a_named_image_boots_the_one_with_its_gpus_driver(rig: Rig, kind: str, image: str) -> None:
    lease = rig.take(choices=(Choice(kind),), regions=("tor1",))

    (booted,) = rig.emulator.living(str(lease.name))
    assert booted.image.slug == image
    rig.release_lease(lease)  # before it costs more than the fixture allows


def test_a_refused_image_rents_nothing_and_leaves_no_lease_open(rig: Rig) -> None:
    with pytest.raises(CloudRefusedError, match="image you specified cannot be used"):
        rig.take(choices=(Choice("gpu-h100x1-80gb"),), regions=("tor1",), image="gpu-amd-base")

    assert (rig.billing(), rig.ledger.open_leases()) == ([], [])


def test_an_image_that_needs_a_larger_disk_is_refused_with_the_clouds_message(rig: Rig) -> None:
    with pytest.raises(CloudRefusedError, match="requires a larger disk"):
        rig.take(choices=(Choice("s-1vcpu-1gb"),), image="gpu-amd-base")


def test_a_token_that_may_not_create_rents_nothing_and_leaves_no_lease_open(rig: Rig) -> None:
    token = rig.emulator.add_token("sizes:read", "regions:read", "droplet:read", "ssh_key:create", "ssh_key:read",
                                   "ssh_key:delete")  # fmt: skip

    with pytest.raises(CloudDeniedError, match="lacks the scope droplet:create"):
        rig.take(rig.cloud_with(token))

    assert (rig.outcomes(), rig.ledger.open_leases()) == (["refused"], [])


def test_no_token_is_in_logs_or_errors(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    rig.emulator.fault("GET", "/v2/sizes", phase="status", status=401)

    with pytest.raises(CloudDeniedError) as caught:
        rig.take()

    assert rig.emulator.token not in caplog.text + str(caught.value) + repr(rig.cloud)


def test_an_endpoint_without_tls_is_refused_before_the_token_leaves(rig: Rig) -> None:
    rig.endpoint = rig.emulator.url.replace("https", "http")

    with pytest.raises(CloudRefusedError, match="must begin with https"):
        rig.cloud_with().offers()

    rig.endpoint = ""


def test_an_untrusted_certificate_is_reported(rig: Rig, tmp_path: Path) -> None:
    import trustme  # noqa: PLC0415  only here

    other = tmp_path / "other.pem"
    trustme.CA().cert_pem.write_to_path(str(other))
    rig.emulator.ca, ca = other, rig.emulator.ca

    with pytest.raises(CloudRefusedError, match="its certificate is not trusted"):
        rig.cloud_with().offers()

    rig.emulator.ca = ca


def test_an_hourly_limit_is_waited_out_until_its_reset(clock: VirtualClock) -> None:
    calls = Calls("cloud", clock)
    in_200_s = str(int(clock.now_s()) + 200)

    wait_s = calls._turn_in_s({"ratelimit-reset": in_200_s})  # noqa: SLF001  the emulator's own limit is the next test

    assert wait_s == pytest.approx(200, abs=1)


@pytest.mark.parametrize(
    ("stated", "wait_s"),
    [
        ("40", 40),
        ("0", 1),
        ("1.5", 1.5),
        ("301", 300),
        ("9" * 400, 300),
        ("1e9", 30),
        ("-5", 30),
        ("", 30),
        ("soon", 30),
        ("\u0663\u0660", 30),  # Arabic digits, which Python takes for a number
        ("Sat, 21 Nov 2026 20:00:20 GMT", 20),
        ("Fri, 20 Nov 2026 00:00:00 GMT", 1),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 300),
        ("Fri, 99 Dec 99999 23:59:59 GMT", 30),
    ],
)
def test_a_stated_wait_of_any_size_is_bounded(tmp_path: Path, stated: str, wait_s: float) -> None:
    clock = VirtualClock(tmp_path / "a-clock")
    calls = Calls("cloud", clock)

    assert calls._turn_in_s({"retry-after": stated}) == pytest.approx(wait_s, abs=0.1)  # noqa: SLF001  as above
    assert 1 <= calls._turn_in_s({"ratelimit-reset": stated}) <= 3600  # noqa: SLF001


def test_a_name_in_a_reply_cannot_change_the_terminal(tmp_path: Path) -> None:
    calls = Calls("cloud", VirtualClock(tmp_path / "a-clock"))
    rows = [{"id": 1, "name": "nb-1-a1-x\x1b[2J\x07gone", "tags": ["\x1b[1mnb"]}]

    assert calls.pages("a list", lambda _page: {"droplets": rows}, "droplets") == [
        {"id": 1, "name": "nb-1-a1-xgone", "tags": ["nb"]}
    ]
    with pytest.raises(CloudRefusedError, match=r"no way$"):
        calls.once("a call", lambda: {"id": "bad_request", "message": "\x1b[2Jno way"}, "droplet")


def test_more_calls_than_a_minute_allows_are_slowed_down_and_all_answered(rig: Rig) -> None:
    began = rig.clock.now()

    for _ in range(300):
        assert rig.cloud.find_by_id("1") is None

    assert (rig.clock.now() - began).total_seconds() >= 10
    assert rig.emulator.requests("GET", "/v2/droplets/1")[-1].status == 404


def test_keys_have_a_limit_of_their_own_and_that_is_waited_out(rig: Rig) -> None:
    for _ in range(12):
        rig.cloud.leftovers()

    assert {one.status for one in rig.emulator.requests("GET", "/v2/account/keys")} == {200, 429}


@pytest.fixture
def clock(tmp_path: Path) -> VirtualClock:
    return VirtualClock(tmp_path / "a-clock")


def test_a_machine_deletes_itself_with_a_token_that_can_do_nothing_else(rig: Rig, tmp_path: Path) -> None:
    lease = rig.take()
    foreign = len(rig.emulator.living()) - 1
    told = {
        "endpoint": rig.emulator.url,
        "token": rig.emulator.add_token("droplet:read", "droplet:delete"),
        "machine_name": lease.name,
        "deadline": int(lease.expires_at.timestamp()),
        "ca": rig.emulator.ca.read_text(),
    }
    (tmp_path / "told.json").write_text(json.dumps(told))
    argv = [
        sys.executable,
        str(Path(dead_man_switch.__file__)),
        str(tmp_path / "told.json"),
        str(tmp_path / "no-deadline"),
    ]

    killer = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    assert killer.stdout is not None
    lines = [killer.stdout.readline(), killer.stdout.readline()]
    killer.kill()
    killer.wait()

    assert "requested the deletion of this machine: [204]" in lines[1]
    assert (rig.billing(), len(rig.emulator.living())) == ([], foreign)


def test_a_failing_list_hides_no_machine_of_the_others(rig: Rig) -> None:
    lease = rig.take()
    rig.emulator.fault("GET", DROPLETS, phase="status", status=403, times=1)

    assert [one.machine_id for one in rig.cloud.find(str(lease.name))] == [lease.machine_id]


def test_a_failing_list_is_an_error_where_no_other_has_the_machine(rig: Rig) -> None:
    rig.emulator.fault("GET", DROPLETS, phase="status", status=403, times=1)

    with pytest.raises(CloudError):
        rig.cloud.find("nb-01k9x-a1-x5")


def test_an_unreadable_action_is_no_failure(rig: Rig) -> None:
    rig.emulator.fault("GET", ONE_DROPLET + "/actions", phase="before", times=12)

    assert rig.take().state == "held"


def switch_at(metadata: str) -> types.ModuleType:
    """The dead man's switch as it runs on a machine whose metadata service is there."""
    text = Path(dead_man_switch.__file__).read_text()
    assert '"169.254.169.254"' in text
    program = types.ModuleType("switch")
    exec(text.replace('"169.254.169.254"', repr(metadata)), program.__dict__)  # noqa: S102  our own program
    return program


def told(rig: Rig, name: str) -> dict[str, object]:
    return {
        "endpoint": rig.emulator.url,
        "token": rig.emulator.add_token("droplet:read", "droplet:delete"),
        "machine_name": name,
        "deadline": 0,
        "ca": rig.emulator.ca.read_text(),
    }


def test_a_machine_that_no_list_shows_deletes_itself_by_its_metadata(rig: Rig) -> None:
    lease = rig.take()
    (droplet,) = rig.emulator.living("nb")
    for view in ("list", "name_list"):
        rig.emulator.hide(view, 60)

    with rig.emulator.metadata_of(droplet) as metadata:
        switch = switch_at(metadata)
        is_accepted = switch.delete_once(switch.Instructions(**told(rig, str(lease.name))))

    assert (is_accepted, rig.billing()) == (True, [])


def test_a_machine_with_the_program_of_another_one_deletes_nothing(rig: Rig) -> None:
    lease = rig.take()
    (droplet,) = rig.emulator.living("nb")

    with rig.emulator.metadata_of(droplet) as metadata:
        switch = switch_at(metadata)
        is_accepted = switch.delete_once(switch.Instructions(**told(rig, "nb-0ther-a1-x5")))

    assert (is_accepted, rig.billing()) == (False, [lease.name])


def test_a_metadata_service_that_does_not_answer_only_delays_the_switch(rig: Rig) -> None:
    lease = rig.take()
    rig.emulator.hide("list", 60)
    rig.emulator.hide("name_list", 60)
    switch = switch_at("127.0.0.1:1")

    assert not switch.delete_once(switch.Instructions(**told(rig, str(lease.name))))
    rig.clock.sleep(60)
    assert switch.delete_once(switch.Instructions(**told(rig, str(lease.name))))


def test_cloud_init_gets_the_first_boot_and_the_key_from_the_metadata_service(rig: Rig) -> None:
    lease = rig.take()
    (droplet,) = rig.emulator.living("nb")

    with rig.emulator.metadata_of(droplet) as metadata:
        fields = {name: fetched(metadata, f"/metadata/v1/{name}") for name in ("user-data", "public-keys", "hostname")}
        listed, missing = fetched(metadata, "/metadata/v1/"), fetched(metadata, "/metadata/v1/colour")

    keys = keys_of(rig.folder / "keys", lease.lease_id)
    assert fields["hostname"] == (200, lease.name)
    assert fields["public-keys"] == (200, keys.client_public)
    assert json.loads(fields["user-data"][1].removeprefix("#cloud-config"))["ssh_keys"]["ed25519_public"] == (
        keys.host_public
    )
    assert {"id", "hostname", "interfaces/"} <= set(listed[1].split())
    assert missing[0] == 404


def fetched(host: str, path: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection(host, timeout=300)
    with closing(connection):
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def test_a_refusal_that_names_no_tag_is_not_answered_by_another_request(rig: Rig) -> None:
    body = {"id": "unprocessable_entity", "message": "this stage of the account allows no such size"}
    rig.emulator.fault("POST", DROPLETS, phase="status", status=422, body=body)

    with pytest.raises(CloudRefusedError, match="this stage"):
        rig.cloud.rent(order(rig))

    assert rig.posts() == 1
