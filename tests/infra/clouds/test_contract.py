"""The contract of every cloud: each test runs with each of them. docs/how-to/add-a-cloud.md says how to add one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.errors import LeaseError
from infra.clouds.by_name import RENTED
from infra.leases.acquire import take_lease
from infra.leases.offers import Choice, LeaseRequest
from infra.leases.reaper import reap
from infra.leases.release import release_lease
from infra.ledger.lease import Lease
from infra.ledger.ledger import Ledger
from tests.infra.clouds.scenes import SCENES, Scene


@pytest.fixture(params=SCENES)
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Scene]:
    with SCENES[request.param](tmp_path) as scene:
        yield scene
        for machine in scene.cloud.find_ours():
            scene.cloud.release(machine.machine_id)


@pytest.fixture
def ledger(scene: Scene, tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger.sqlite", scene.clock)


def take(scene: Scene, ledger: Ledger, kind: str | None = None) -> Lease:
    request = LeaseRequest((Choice(kind or scene.kind),), minutes=10)
    return take_lease(scene.cloud, ledger, scene.clock, request, night="2026-01-01")


def release(scene: Scene, ledger: Ledger, lease: Lease) -> Lease:
    return release_lease(scene.cloud, ledger, scene.clock, lease.lease_id)


def ids(scene: Scene) -> list[str]:
    return [found.machine_id for found in scene.cloud.find_ours()]


def test_every_cloud_that_is_rented_from_keeps_the_contract() -> None:
    assert SCENES.keys() == {"local", "ssh", *RENTED}


def test_offers_have_a_price_and_the_cheapest_is_first(scene: Scene) -> None:
    offers = scene.cloud.offers()

    assert scene.kind in {one.kind for one in offers}
    assert [one.usd_per_hour for one in offers] == sorted(one.usd_per_hour for one in offers)


def test_a_rented_machine_is_found_by_its_prefix_its_name_and_its_id(scene: Scene, ledger: Ledger) -> None:
    lease = take(scene, ledger)

    found = scene.cloud.find_by_id(str(lease.machine_id))
    assert ids(scene) == [lease.machine_id]
    assert [one.machine_id for one in scene.cloud.find(str(lease.name))] == [lease.machine_id]
    assert found is not None
    assert found.machine_id == lease.machine_id


def test_a_lease_has_the_machine_and_its_address(scene: Scene, ledger: Ledger) -> None:
    lease = take(scene, ledger)

    assert (lease.kind, lease.state, lease.attempt) == (scene.kind, "held", 1)
    assert lease.address is not None
    assert [attempt.outcome for attempt in ledger.attempts()] == ["rented"]


def test_taking_a_lease_again_in_one_night_continues_the_first(scene: Scene, ledger: Ledger) -> None:
    assert take(scene, ledger) == take(scene, ledger)
    assert len(ids(scene)) == 1


def test_a_released_machine_is_not_found_and_releasing_it_again_changes_nothing(scene: Scene, ledger: Ledger) -> None:
    lease = take(scene, ledger)

    gone = release(scene, ledger, lease)

    scene.cloud.release(str(lease.machine_id))
    assert (ids(scene), scene.cloud.find(str(lease.name)), gone.state) == ([], [], "released")
    assert release(scene, ledger, lease) == gone


def test_releasing_an_unknown_machine_is_no_error_and_releases_no_other(scene: Scene, ledger: Ledger) -> None:
    lease = take(scene, ledger)

    scene.cloud.release("never-was")
    scene.cloud.release("4711")

    assert ids(scene) == [lease.machine_id]


def test_an_unknown_machine_is_not_found(scene: Scene) -> None:
    assert scene.cloud.find_by_id("4711") is None
    assert scene.cloud.find("nb-01k9x-a1-x5") == []


def test_a_kind_that_is_not_offered_rents_nothing(scene: Scene, ledger: Ledger) -> None:
    with pytest.raises(LeaseError, match="offers no machine of kind 'abacus'"):
        take(scene, ledger, "abacus")

    assert (ledger.leases(), ids(scene)) == ([], [])


def test_a_machine_whose_reply_was_lost_is_found_and_used(scene: Scene, ledger: Ledger) -> None:
    scene.lose_reply("rent")

    lease = take(scene, ledger)

    assert (ids(scene), lease.state) == ([lease.machine_id], "held")


def test_a_release_whose_reply_was_lost_is_seen_at_the_cloud(scene: Scene, ledger: Ledger) -> None:
    lease = take(scene, ledger)
    scene.lose_reply("release")

    gone = release(scene, ledger, lease)

    assert (ids(scene), gone.state) == ([], "released")


def test_what_others_have_is_neither_released_nor_reaped(scene: Scene, ledger: Ledger) -> None:
    is_there = scene.place_another()

    done = reap({scene.cloud.name: scene.cloud}, ledger, scene.clock)

    assert (done.released, done.failed, is_there()) == ([], {}, True)
