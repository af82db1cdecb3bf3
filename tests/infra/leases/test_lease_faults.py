"""The fault table: each row is a way in which a cloud fails, and what must be true all the same.

Whatever a test does here, all that is billed at its end is held by an open lease. Then its fixture runs a reaper that
knows nothing, and asks the emulator's own account of what bills: nothing of ours may be left, and nothing of anybody
else's may have been touched.
"""

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

import pytest

from bench.errors import (
    CloudDeniedError,
    CloudError,
    CloudLimitError,
    CloudRefusedError,
    LeaseError,
    LedgerError,
    LostReplyError,
    NoCapacityError,
)
from bench.machine.names import MachineName
from infra.leases.acquire import take_lease
from infra.leases.offers import Choice, after_spending
from infra.leases.release import release_lease
from infra.ledger.ledger import Ledger
from infra.remote.ssh_keys import fingerprint, keys_of
from infra.settings import PricedSize
from tests.emulators.digitalocean.faults import FOR_EVER
from tests.emulators.virtual_clock import VirtualClock
from tests.emulators.wire import Wire
from tests.infra.rented import DROPLETS, KIND, ONE_DROPLET, Rig, lease_request
from tests.pairs import thin_matrix

BEFORE = ("before", "close", "silence")
AFTER = ("after", "close_after", "silence_after", "truncated", "empty", "garbage")
READS = ("/v2/sizes", "/v2/regions")
KEYS, ONE_KEY = "/v2/account/keys", r"/v2/account/keys/[^/]+"


class Reconnecting:
    """A clock whose sleep repairs a wire that refuses connections."""

    def __init__(self, clock: VirtualClock, wire: Wire) -> None:
        self.clock, self.wire, self.times = clock, wire, 0

    def now(self) -> datetime:
        return self.clock.now()

    def monotonic(self) -> float:
        return self.clock.monotonic()

    def sleep(self, seconds: float) -> None:
        self.clock.sleep(seconds)
        self.times += 1
        self.wire.set("pass")


@pytest.fixture(autouse=True)
def _all_that_bills_is_held(rig: Rig) -> Iterator[None]:
    """Before the reaper tidies up: whatever is billed belongs to a lease that is still open."""
    yield
    held: set[str] = set()
    with suppress(LedgerError):  # where a test has broken the ledger, nothing may be billed
        held = {attempt.name for lease in rig.ledger.open_leases() for attempt in rig.ledger.attempts(lease.lease_id)}
    assert set(rig.billing()) <= held


# Rows 1 to 6: before anything is rented.


@pytest.mark.parametrize("path", READS)
@pytest.mark.parametrize("phase", BEFORE)
def test_row_1_a_read_that_fails_is_repeated(rig: Rig, path: str, phase: str) -> None:
    rig.emulator.fault("GET", path, phase=phase, times=2, status=503)

    lease = rig.take()

    assert lease.state == "held"


@pytest.mark.parametrize("path", READS)
def test_row_1_a_read_that_keeps_failing_rents_nothing(rig: Rig, path: str) -> None:
    rig.emulator.fault("GET", path, phase="before", times=FOR_EVER)

    with pytest.raises(CloudError, match="does not answer"):
        rig.take()

    assert (rig.posts(), len(rig.emulator.requests("GET", path))) == (0, 6)


@pytest.mark.parametrize(("status", "said"), [(401, "wrong or revoked"), (403, "lacks the scope sizes:read")])
def test_row_2_a_rejected_token_is_not_retried(rig: Rig, status: int, said: str) -> None:
    rig.emulator.fault("GET", "/v2/sizes", phase="status", status=status, times=FOR_EVER)

    with pytest.raises(CloudDeniedError, match=said):
        rig.take()

    assert len(rig.emulator.requests()) == 1


def test_row_3_a_throttled_call_waits_as_long_as_the_cloud_states(rig: Rig) -> None:
    rig.emulator.fault("GET", "/v2/sizes", phase="status", status=429, retry_after=40)
    began = rig.clock.now()

    rig.cloud.offers()

    assert 40 <= (rig.clock.now() - began).total_seconds() < 70
    assert len(rig.emulator.requests()) == 2


def test_row_3_an_hourly_limit_waits_for_its_reset(rig: Rig) -> None:
    rig.emulator.fault("GET", "/v2/sizes", phase="status", status=429, times=FOR_EVER)
    began = rig.clock.now()

    with pytest.raises(CloudError, match="does not answer sizes:read"):
        rig.cloud.offers()

    assert (rig.clock.now() - began).total_seconds() < 900
    assert len(rig.emulator.requests()) <= 6


def test_row_4_a_size_without_a_region_is_no_offer(rig: Rig) -> None:
    rig.emulator.sell(KIND, regions=())

    with pytest.raises(NoCapacityError, match=f"has no {KIND} available now"):
        rig.take()

    assert rig.posts() == 0


def test_row_4_a_size_that_is_not_available_is_no_offer(rig: Rig) -> None:
    rig.emulator.sell(KIND, available=False)

    with pytest.raises(NoCapacityError):
        rig.take()

    assert rig.posts() == 0


def test_row_5_an_unlisted_size_is_rented_only_where_settings_price_it(rig: Rig) -> None:
    kind = "gpu-mi325x1-256gb-contracted"

    with pytest.raises(LeaseError, match=f"offers no machine of kind '{kind}'"):
        rig.take(choices=(Choice(kind),))

    assert rig.posts() == 0


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        ({"usd_per_hour_max": 2.0}, "more than machine.usd_per_hour_max = 2.00"),
        ({"budget_usd": 2.0}, "60 minutes cost up to 2.59 USD, more than machine.budget_usd = 2.00"),
        ({"budget_usd": 0.0}, "more than machine.budget_usd = 0.00"),
    ],
)
def test_row_6_an_offer_over_the_price_limit_is_not_requested(rig: Rig, limit: dict[str, Any], said: str) -> None:
    with pytest.raises(LeaseError, match=said):
        rig.take(**limit)

    assert (rig.posts(), rig.ledger.leases()) == (0, [])


# Row 7: the SSH key.


@pytest.mark.parametrize("phase", thin_matrix([*BEFORE, *AFTER], each=4))
def test_row_7_a_lost_reply_registers_one_key(rig: Rig, phase: str) -> None:
    rig.emulator.fault("POST", KEYS, phase=phase)

    lease = rig.take()

    assert [key.name for key in rig.emulator.state.keys.values()] == [lease.name]
    rig.release_lease(lease)
    assert rig.emulator.state.keys == {}


def test_row_7_a_key_that_is_registered_already_is_used(rig: Rig) -> None:
    def plant(name: MachineName) -> None:
        assert fingerprint(keys_of(rig.folder / "keys", name.lease_id).client_public)

    rig.before_post = plant
    first = rig.take()
    # The lease makes a new attempt: its key is registered by now.
    rig.release_lease(first)
    rig.emulator.fate("vanishes")

    second = rig.take()

    assert rig.outcomes()[-2:] == ["vanished", "rented"]
    assert len(rig.emulator.state.keys) == 1
    assert second.attempt == 2


@pytest.mark.parametrize(("late_s", "phase"), [(3.0, ""), (20.0, ""), (20.0, "close_after")])
def test_row_7_a_key_that_is_usable_only_after_a_while_is_waited_for(rig: Rig, late_s: float, phase: str) -> None:
    rig.emulator.lag["keys"] = late_s
    if phase:
        rig.emulator.fault("POST", KEYS, phase=phase)

    lease = rig.take()

    assert (rig.outcomes(), rig.billing()) == (["rented"], [lease.name])
    assert [key.name for key in rig.emulator.state.keys.values()] == [lease.name]


def test_row_7_a_key_that_never_becomes_usable_rents_nothing(rig: Rig) -> None:
    rig.emulator.lag["keys"] = 1800.0

    with pytest.raises(CloudError, match="invalid key identifiers"):
        rig.take()

    assert (rig.billing(), rig.ledger.open_leases()) == ([], [])


# Rows 8 to 17: requesting a machine.


def test_row_8_a_call_that_never_arrived_is_repeated_after_a_search(rig: Rig) -> None:
    with Wire(("127.0.0.1", urlsplit(rig.emulator.url).port or 0)) as wire:
        rig.endpoint = f"https://127.0.0.1:{wire.port}"
        clock = Reconnecting(rig.clock, wire)
        rig.cloud = cloud = rig.cloud_with()

        def refuse(_name: MachineName) -> None:
            rig.before_post = lambda _name: None
            wire.set("refuse")
            with suppress(CloudError):
                cloud.regions()  # so that no connection is left over on which the next call could get lost

        rig.before_post = refuse

        lease = take_lease(rig.cloud, rig.ledger, clock, lease_request(), night="n")

        assert rig.billing() == [lease.name]
        assert (rig.posts(), lease.attempt, clock.times > 0) == (1, 1, True)
    rig.endpoint = ""
    rig.cloud = rig.cloud_with()


@pytest.mark.parametrize("phase", thin_matrix(AFTER, each=3))
@pytest.mark.parametrize("lag_s", [0.0, 90.0])
def test_rows_9_10_16_a_machine_whose_reply_was_lost_is_found_and_not_requested_again(
    rig: Rig, phase: str, lag_s: float
) -> None:
    rig.emulator.lag.update(list=lag_s, name_list=lag_s, tag_list=lag_s)
    rig.emulator.fault("POST", DROPLETS, phase=phase, status=504)

    lease = rig.take()

    assert rig.billing() == [lease.name]
    assert (rig.posts(), lease.attempt, rig.outcomes()) == (1, 1, ["rented"])


def test_row_9_a_machine_in_one_list_only_is_found(rig: Rig) -> None:
    for view in ("list", "name_list"):
        rig.emulator.hide(view, 1000)
    rig.emulator.fault("POST", DROPLETS, phase="close_after")

    lease = rig.take()

    assert (rig.billing(), rig.posts()) == ([lease.name], 1)


@pytest.mark.parametrize("phase", BEFORE)
def test_row_11_a_machine_that_never_appears_is_requested_under_another_name(rig: Rig, phase: str) -> None:
    rig.emulator.fault("POST", DROPLETS, phase=phase)
    began = rig.clock.now()

    lease = rig.take()

    assert (rig.posts(), lease.attempt, rig.outcomes()) == (2, 2, ["unanswered", "rented"])
    assert (rig.clock.now() - began).total_seconds() > rig.cloud.settle_s
    assert len({attempt.name for attempt in rig.ledger.attempts()}) == 2


def test_row_11_creates_without_a_reply_end_after_three_attempts(rig: Rig) -> None:
    rig.emulator.fault("POST", DROPLETS, phase="before", times=FOR_EVER)

    with pytest.raises(LostReplyError):
        rig.take()

    assert rig.posts() == 3
    assert rig.ledger.open_leases() == []


def test_row_12_a_throttled_create_is_repeated_after_a_search(rig: Rig) -> None:
    rig.emulator.fault("POST", DROPLETS, phase="status", status=429, retry_after=30)

    lease = rig.take()

    asked = [one.path for one in rig.emulator.requests() if one.path.startswith(DROPLETS)]
    assert asked[:3] == [DROPLETS] * 3
    assert [one.method for one in rig.emulator.requests(path=DROPLETS)][:2] == ["POST", "GET"]
    assert (rig.posts(), lease.attempt) == (2, 1)


def test_a_create_call_that_is_throttled_for_longer_than_its_lease_lasts_is_not_repeated(rig: Rig) -> None:
    rig.emulator.fault("POST", DROPLETS, phase="status", status=429)  # until the hour's limit is reset

    with pytest.raises(CloudError, match="nothing was rented: try later"):
        rig.take(minutes=20)

    assert (rig.posts(), rig.billing(), rig.ledger.open_leases()) == (1, [], [])


def test_a_create_call_is_not_repeated_where_the_search_before_it_took_too_long(rig: Rig) -> None:
    rig.emulator.fault("POST", DROPLETS, phase="status", status=429, retry_after=30)
    rig.emulator.fault("GET", DROPLETS, phase="status", status=429, retry_after=200)

    with pytest.raises(CloudError, match="nothing was rented: try later"):
        rig.take(minutes=20)

    assert (rig.posts(), rig.billing(), rig.ledger.open_leases()) == (1, [], [])


def test_row_13_without_capacity_the_next_offer_is_tried(rig: Rig) -> None:
    rig.emulator.behaviour.says_where = False
    rig.emulator.capacity[KIND, "atl1"] = 0
    rig.emulator.capacity[KIND, "tor1"] = 0

    lease = rig.take(choices=(Choice(KIND), Choice("gpu-h100x1-80gb")), regions=("atl1", "tor1", "nyc2"))

    assert [(one.kind, one.region, one.outcome) for one in rig.ledger.attempts()] == [
        (KIND, "atl1", "no-capacity"),
        (KIND, "tor1", "no-capacity"),
        (KIND, "nyc2", "rented"),
    ]
    assert lease.region == "nyc2"


def test_row_13_a_region_that_the_cloud_suggests_is_tried_next(rig: Rig) -> None:
    rig.emulator.capacity[KIND, "atl1"] = 0
    rig.emulator.capacity[KIND, "tor1"] = 0

    lease = rig.take(regions=("atl1", "tor1", "nyc2"))

    assert [one.region for one in rig.ledger.attempts()] == ["atl1", "nyc2"]
    assert lease.region == "nyc2"


@pytest.mark.parametrize("regions", [(), ("atl1", "tor1", "nyc2")], ids=["any", "some"])
def test_row_13_a_suggested_region_is_not_tried_for_a_kind_that_is_wanted_in_another_one_only(
    rig: Rig, regions: tuple[str, ...]
) -> None:
    rig.emulator.capacity[KIND, "atl1"] = 0

    with pytest.raises(NoCapacityError):
        rig.take(choices=(Choice(KIND, "atl1"),), regions=regions)

    assert (rig.posts(), rig.billing()) == (1, [])


def test_row_13_capacity_is_waited_for_until_the_timeout(rig: Rig) -> None:
    rig.emulator.capacity[KIND, "atl1"] = 0
    rig.emulator.state.at(rig.clock.now_s() + 100, lambda _at: rig.emulator.capacity.update({(KIND, "atl1"): 1}))

    lease = rig.take(patience_s=600)

    assert rig.outcomes() == ["no-capacity", "no-capacity", "no-capacity", "rented"]
    assert lease.expires_at > rig.clock.now()


def test_row_13_without_any_capacity_nothing_is_left_behind(rig: Rig) -> None:
    rig.emulator.capacity[KIND, "atl1"] = 0

    with pytest.raises(NoCapacityError, match="temporarily unavailable"):
        rig.take()

    assert (rig.outcomes(), rig.ledger.open_leases()) == (["no-capacity"], [])


def test_row_13_a_spot_machine_is_tried_first_where_the_suite_prefers_it(rig: Rig) -> None:
    kind = "gpu-mi350x1-288gb"
    rig.emulator.capacity[f"{kind}-spot", "ric1"] = 0

    with pytest.raises(NoCapacityError):
        rig.take(choices=(Choice(kind),), regions=(), spot="only")

    assert [(one.kind, one.is_spot) for one in rig.ledger.attempts()] == [(f"{kind}-spot", True)]


def test_row_14_an_account_limit_is_reported_after_one_call(rig: Rig) -> None:
    rig.emulator.behaviour.gpu_limit = 0

    with pytest.raises(CloudLimitError, match="ask the cloud for a higher limit"):
        rig.take(choices=(Choice(KIND), Choice("gpu-h100x1-80gb")), regions=(), patience_s=600)

    assert (rig.posts(), rig.outcomes(), rig.ledger.open_leases()) == (1, ["over-limit"], [])


def test_row_14_our_own_machines_are_named_where_the_limit_is_reached(rig: Rig) -> None:
    rig.emulator.behaviour.gpu_limit = 2
    first = rig.take()

    with pytest.raises(CloudLimitError, match=str(first.name)):
        rig.take(night="another")


def test_row_15_an_unknown_refusal_is_final(rig: Rig) -> None:
    body = {"id": "unprocessable_entity", "message": "Mercury is in retrograde."}
    rig.emulator.fault("POST", DROPLETS, phase="status", status=422, body=body, times=FOR_EVER)

    with pytest.raises(CloudRefusedError, match="Mercury is in retrograde"):
        rig.take(regions=(), patience_s=600)

    assert (rig.posts(), rig.outcomes()) == (1, ["refused"])


@pytest.mark.parametrize("phase", ["", "close_after"])
def test_row_17_of_two_machines_of_one_name_the_first_stays(rig: Rig, phase: str) -> None:
    def plant(name: MachineName) -> None:
        rig.emulator.plant_droplet(str(name), foreign=False)

    rig.before_post = plant
    if phase:
        rig.emulator.fault("POST", DROPLETS, phase=phase)

    lease = rig.take()

    assert rig.billing() == [lease.name]
    assert [str(one.droplet_id) for one in rig.emulator.living("nb")] == [lease.machine_id]
    assert any("more than one machine" in line for line in rig.said)


def test_row_17_a_late_duplicate_does_not_replace_the_active_machine(rig: Rig) -> None:
    def plant(name: MachineName) -> None:
        rig.emulator.plant_droplet(str(name), foreign=False)

    rig.before_post = plant
    for view in ("list", "name_list", "tag_list"):
        rig.emulator.hide(view, 20)

    lease = rig.take()

    assert [(str(one.droplet_id), one.address) for one in rig.emulator.living("nb")] == [
        (lease.machine_id, lease.address)
    ]


# Rows 18 to 24: after the request was accepted (202).


@pytest.mark.parametrize("lag_s", [20.0, 100.0])
def test_row_18_a_machine_that_is_not_found_at_first_is_waited_for(rig: Rig, lag_s: float) -> None:
    rig.emulator.lag["get"] = lag_s

    lease = rig.take()

    assert (rig.posts(), rig.billing()) == (1, [lease.name])


@pytest.mark.parametrize("fate", ["vanishes", "errored", "stuck", "no address"])
def test_rows_19_to_21_a_machine_that_never_becomes_active_is_released_and_another_rented(rig: Rig, fate: str) -> None:
    rig.emulator.fate(fate)

    lease = rig.take()

    assert rig.outcomes() == ["vanished" if fate in ("vanishes", "errored") else "stuck", "rented"]
    assert (rig.billing(), lease.attempt) == ([lease.name], 2)


def test_rows_19_to_21_machines_that_never_become_active_are_not_rented_in_every_round(rig: Rig) -> None:
    rig.emulator.fate(*["errored"] * 20)
    began = rig.clock.now()

    with pytest.raises(LeaseError, match=f"has no {KIND} that can be used, after 2 attempts; the last attempt failed"):
        rig.take(patience_s=7200)

    assert (rig.posts(), rig.billing(), rig.ledger.open_leases()) == (2, [], [])
    assert (rig.clock.now() - began).total_seconds() < 1800


def test_rows_19_to_21_a_failed_machine_does_not_end_the_wait_for_another_kind(rig: Rig) -> None:
    other = "gpu-h100x1-80gb"
    rig.emulator.sell(other, regions=("atl1",))
    rig.emulator.capacity[other, "atl1"] = 0
    rig.emulator.state.at(rig.clock.now_s() + 3600, lambda _at: rig.emulator.capacity.update({(other, "atl1"): 1}))
    rig.emulator.fate("errored", "errored")

    lease = rig.take(choices=(Choice(KIND), Choice(other)), patience_s=7200)

    assert (lease.kind, rig.outcomes().count("vanished")) == (other, 2)


def test_rows_19_to_21_a_kind_that_is_not_listed_now_is_waited_for_after_another_has_failed(rig: Rig) -> None:
    other = "gpu-h100x1-80gb"
    rig.emulator.sell(other, regions=())
    rig.emulator.state.at(rig.clock.now_s() + 3600, lambda _at: rig.emulator.sell(other, regions=("atl1",)))
    rig.emulator.fate("errored", "errored")

    lease = rig.take(choices=(Choice(KIND), Choice(other)), patience_s=7200)

    assert (lease.kind, rig.outcomes()) == (other, ["vanished", "vanished", "rented"])


def test_rows_19_to_21_the_cost_of_a_failed_machine_counts_for_the_lease(rig: Rig) -> None:
    rig.emulator.behaviour.deletes_pending = True
    rig.emulator.fate("stuck")

    lease = rig.take()

    assert lease.earlier_usd == pytest.approx(2.59 * 1205 / 3600, rel=0.02)
    assert lease.usd(rig.clock.now()) <= rig.emulator.usd("nb") + 0.05


def test_row_22_a_machine_is_found_whichever_lists_have_it(rig: Rig) -> None:
    rig.take()
    for view in ("tag_list", "name_list"):
        rig.emulator.hide(view, 1e6)

    assert len(rig.cloud.find_ours()) == 1


def test_row_22_all_pages_of_a_list_are_read(rig: Rig) -> None:
    rig.emulator.behaviour.gpu_limit = rig.emulator.behaviour.droplet_limit = 1000
    for number in range(205):
        rig.emulator.plant_droplet(f"others-{number}")
    lease = rig.take()
    rig.emulator.hide("tag_list", 1e6)

    assert [one.name for one in rig.cloud.find_ours()] == [lease.name]


@pytest.mark.parametrize("phase", BEFORE)
def test_row_23_a_silent_cloud_does_not_prove_a_machine_gone(rig: Rig, phase: str) -> None:
    lease = rig.take()
    fault = rig.emulator.fault("GET", ONE_DROPLET, phase=phase, times=FOR_EVER)

    assert rig.explain_loss(lease) is None
    fault.times = 0


def test_row_24_a_reclaimed_machine_is_reported_as_gone(rig: Rig) -> None:
    lease = rig.take()
    rig.emulator.reclaim(int(lease.machine_id or 0))

    assert str(rig.explain_loss(lease)).endswith("the cloud reclaimed it, or it was deleted")
    assert rig.release_lease(lease).state == "released"


def test_row_24_one_not_found_does_not_prove_a_machine_gone(rig: Rig) -> None:
    lease = rig.take()
    rig.emulator.hide("get", 10)

    assert rig.explain_loss(lease) is None


def test_row_24_the_reaper_closes_the_lease_of_a_machine_that_is_gone(rig: Rig) -> None:
    lease = rig.take()
    rig.emulator.reclaim(int(lease.machine_id or 0))
    rig.clock.sleep(3700)

    rig.reap()

    assert rig.ledger.open_leases() == []


# Row 26 and rows 34 to 40: the release.


def test_a_machine_is_released_while_it_is_being_created(rig: Rig) -> None:
    def interrupt(_name: MachineName) -> None:
        rig.emulator.fault("GET", ONE_DROPLET, phase="status", status=403)

    rig.before_post = interrupt

    with pytest.raises(CloudDeniedError):
        rig.take()

    refused = [one for one in rig.emulator.requests("DELETE") if one.status == 422]
    assert refused
    assert (rig.billing(), rig.ledger.open_leases()) == ([], [])


def test_row_26_a_machine_that_is_busy_is_deleted_all_the_same(rig: Rig) -> None:
    rig.emulator.behaviour.delays.snapshot_s_per_gb = 2.0
    lease = rig.take()
    rig.cloud.snapshot(str(lease.machine_id), "nb-img-0af3-x5")

    gone = rig.release_lease(lease)

    assert (gone.state, rig.billing()) == ("released", [])


@pytest.mark.parametrize("phase", BEFORE)
@pytest.mark.parametrize("times", [1, 20])
def test_row_34_deleting_without_a_timeout_never_stops(rig: Rig, phase: str, times: int) -> None:
    if (phase, times) == ("silence", 20):
        times = 8  # each one is waited for in earnest
    lease = rig.take()
    rig.emulator.fault("DELETE", ONE_DROPLET, phase=phase, times=times)

    gone = rig.release_lease(lease, patience_s=None)

    assert (gone.state, rig.billing()) == ("released", [])


def test_row_34_after_the_timeout_the_reaper_continues(rig: Rig) -> None:
    lease = rig.take()
    fault = rig.emulator.fault("DELETE", ONE_DROPLET, phase="before", times=FOR_EVER)

    with pytest.raises(LeaseError, match="is still billed: run nightbench reap"):
        rig.release_lease(lease, patience_s=600)

    assert rig.ledger.lease(lease.lease_id).state == "releasing"
    assert any(line.startswith("ALARM") for line in rig.said)
    fault.times = 0
    assert rig.reap().released == [lease.machine_id]


@pytest.mark.parametrize("phase", ["after", "close_after", "silence_after"])
def test_row_35_an_unconfirmed_deletion_is_confirmed_by_a_look(rig: Rig, phase: str) -> None:
    lease = rig.take()
    rig.emulator.fault("DELETE", ONE_DROPLET, phase=phase)

    assert rig.release_lease(lease).state == "released"


def test_row_36_a_machine_that_is_still_listed_is_deleted_again(rig: Rig) -> None:
    lease = rig.take()
    rig.emulator.fault("DELETE", ONE_DROPLET, phase="lie", times=3)

    gone = rig.release_lease(lease)

    assert (gone.state, rig.billing()) == ("released", [])
    assert len([one for one in rig.emulator.requests("DELETE") if one.path.startswith(DROPLETS)]) > 3


@pytest.mark.parametrize("view", ["get", "list", "tag_list", "name_list"])
def test_row_36_a_machine_in_any_list_is_not_recorded_as_released(rig: Rig, view: str) -> None:
    lease = rig.take()
    rig.emulator.behaviour.gone_lag[view] = 5000

    with pytest.raises(LeaseError, match="still shows"):
        rig.release_lease(lease, patience_s=300)

    assert rig.ledger.lease(lease.lease_id).state == "releasing"


def test_row_36_a_false_success_is_never_accepted(rig: Rig) -> None:
    lease = rig.take()
    fault = rig.emulator.fault("DELETE", ONE_DROPLET, phase="lie", times=FOR_EVER)

    with pytest.raises(LeaseError, match="still exists after its release"):
        rig.release_lease(lease)

    assert rig.ledger.lease(lease.lease_id).state == "releasing"
    fault.times = 0


@pytest.mark.parametrize("status", [401, 403])
def test_row_37_a_token_revoked_before_the_release_raises_an_error_that_names_the_machine(
    rig: Rig, status: int
) -> None:
    lease = rig.take()
    fault = rig.emulator.fault("DELETE", ONE_DROPLET, phase="status", status=status, times=FOR_EVER)

    with pytest.raises(CloudDeniedError, match=f"MACHINE {lease.machine_id} IS STILL BILLED"):
        rig.release_lease(lease)

    assert rig.ledger.lease(lease.lease_id).state == "releasing"
    assert rig.reap().failed != {}
    fault.times = 0


def test_row_38_a_false_not_found_is_not_accepted(rig: Rig) -> None:
    lease = rig.take()
    not_found = {"id": "not_found", "message": "The resource you requested could not be found."}
    rig.emulator.fault("DELETE", ONE_DROPLET, phase="status", status=404, body=not_found, times=2)
    for view in ("get", "list", "name_list", "tag_list"):
        rig.emulator.hide(view, 60)

    gone = rig.release_lease(lease)

    assert (gone.state, rig.billing()) == ("released", [])


def test_row_39_nothing_is_deleted_by_its_tag(rig: Rig) -> None:
    lease = rig.take()
    rig.emulator.plant_droplet("somebody-elses-too", tags=["nb", f"nb-run:{lease.lease_id}"])

    rig.release_lease(lease)
    reaped = rig.reap(everything=True)

    assert len(reaped.unrecognized) == 1
    assert "somebody-elses-too" in reaped.unrecognized[0]


@pytest.mark.parametrize("path", [r"/v2/tags.*", r"/v2/projects.*", r"/v2/firewalls.*"])
def test_row_40_failures_of_unneeded_calls_delay_nothing(rig: Rig, path: str) -> None:
    for method in ("GET", "POST", "DELETE"):
        rig.emulator.fault(method, path, phase="before", times=FOR_EVER)

    assert rig.release_lease(rig.take()).state == "released"
    rig.emulator.api.plan.faults.clear()  # tags that are left are deleted by the next reaper


def test_row_40_a_failing_list_by_tag_does_not_hide_machines(rig: Rig) -> None:
    rig.emulator.behaviour.gpus_in_tag_list = False
    rig.emulator.lag["tags"] = 1e6

    assert rig.release_lease(rig.take()).state == "released"


def test_row_41_the_billing_api_is_not_called(rig: Rig) -> None:
    rig.emulator.fault("GET", r"/v2/customers.*", phase="before", times=FOR_EVER)

    assert rig.release_lease(rig.take()).state == "released"


# Failures of the ledger.


def test_a_ledger_that_breaks_after_the_create_call_leaves_no_machine(rig: Rig) -> None:
    def break_ledger(_name: MachineName) -> None:
        (rig.folder / "ledger.sqlite").write_bytes(b"no database")

    rig.before_post = break_ledger

    with pytest.raises(LedgerError, match="cannot be used"):
        rig.take()

    assert (rig.posts(), rig.billing()) == (1, [])


def test_a_ledger_that_breaks_later_does_not_prevent_the_release(rig: Rig) -> None:
    lease = rig.take()
    (rig.folder / "ledger.sqlite").write_bytes(b"no database")

    with pytest.raises(LedgerError):
        release_lease(rig.cloud, rig.ledger, rig.clock, lease)

    assert rig.billing() == []


def test_a_lost_ledger_does_not_prevent_the_release(rig: Rig) -> None:
    lease = rig.take()
    (rig.folder / "ledger.sqlite").unlink()
    anew = Ledger(rig.folder / "ledger.sqlite", rig.clock)

    gone = release_lease(rig.cloud, anew, rig.clock, lease)

    assert (gone.state, gone.released_at is not None, rig.billing()) == ("released", True, [])


def test_a_ledger_that_is_lost_while_renting_leaves_no_machine(rig: Rig) -> None:
    def lose(_name: MachineName) -> None:
        (rig.folder / "ledger.sqlite").unlink()
        Ledger(rig.folder / "ledger.sqlite", rig.clock)

    rig.before_post = lose

    with pytest.raises(KeyError):
        rig.take()

    assert (rig.posts(), rig.billing()) == (1, [])


def test_a_folder_that_cannot_be_written_rents_nothing(rig: Rig) -> None:
    (rig.folder / "a-file").write_text("")

    with pytest.raises(LedgerError, match="nothing is rented without it"):
        Ledger(rig.folder / "a-file" / "ledger.sqlite")


# Prices and budgets.


def test_of_two_prices_the_higher_one_counts(rig: Rig) -> None:
    def raise_price(_name: MachineName) -> None:
        rig.emulator.sell(KIND, usd_per_hour=3.80)

    rig.before_post = raise_price

    assert rig.take().usd_per_hour == 3.80


def test_a_machine_that_costs_more_than_the_limit_is_released(rig: Rig) -> None:
    rig.before_post = lambda _name: rig.emulator.sell(KIND, usd_per_hour=3.80)

    with pytest.raises(LeaseError, match=r"more than machine\.usd_per_hour_max = 3\.00"):
        rig.take(usd_per_hour_max=3.0)

    assert (rig.posts(), rig.billing(), rig.ledger.open_leases()) == (1, [], [])


def test_a_machine_whose_price_exceeds_the_months_limit_is_released(rig: Rig) -> None:
    rig.before_post = lambda _name: rig.emulator.sell(KIND, usd_per_hour=3.80)

    with pytest.raises(LeaseError, match=r"costs 3\.80 USD/h: .* may cost 3\.80 USD: .*MONTH_USD_MAX = 3\.00"):
        rig.take(month_usd_max=3.0)

    assert (rig.posts(), rig.billing(), rig.ledger.open_leases()) == (1, [], [])


def test_a_machine_that_costs_more_than_its_offer_is_kept_within_the_months_limit(rig: Rig) -> None:
    rig.before_post = lambda _name: rig.emulator.sell(KIND, usd_per_hour=3.80)

    assert rig.take(month_usd_max=4.0).usd_per_hour == 3.80


def test_a_machine_that_costs_more_than_the_limit_is_not_rented_again_while_there_is_time(rig: Rig) -> None:
    rig.before_post = lambda _name: rig.emulator.sell(KIND, usd_per_hour=3.80)
    cloud = rig.cloud_with(priced_sizes={KIND: PricedSize(usd_per_hour=2.59, regions=("atl1",))})  # out of date

    with pytest.raises(LeaseError, match=r"more than machine\.usd_per_hour_max = 3\.00"):
        rig.take(cloud, usd_per_hour_max=3.0, patience_s=7200)

    assert (rig.posts(), rig.billing(), rig.ledger.open_leases()) == (1, [], [])


def test_what_failed_attempts_have_cost_counts_against_the_budget(rig: Rig) -> None:
    rig.emulator.behaviour.deletes_pending = True
    rig.emulator.fate("stuck", "stuck", "stuck")

    with pytest.raises(LeaseError, match=r"USD spent, more than machine\.budget_usd = 4\.00"):
        rig.take(budget_usd=4.0, patience_s=7200, regions=("atl1", "tor1", "nyc2"))

    assert rig.posts() == 2
    assert rig.emulator.usd("nb") < 4.0


def test_earlier_spending_shortens_the_lease_to_nothing(rig: Rig) -> None:
    whole = lease_request(minutes=60, budget_usd=4.0)

    half, none = after_spending(whole, 2.0), after_spending(whole, 4.0)
    lease = rig.take(minutes=half.minutes, budget_usd=half.budget_usd, spent_usd=half.spent_usd)

    assert after_spending(whole, 0.0) == whole
    assert (lease.expires_at - rig.clock.now()).total_seconds() <= 1800
    with pytest.raises(LeaseError, match=r"after 4\.00 USD spent, more than machine\.budget_usd = 4\.00"):
        rig.take(night="next", minutes=none.minutes, budget_usd=none.budget_usd, spent_usd=none.spent_usd)
    rig.release_lease(lease)
