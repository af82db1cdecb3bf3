"""Interrupts, full disks, unreadable records, and clocks that jump."""

import itertools
import resource
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bench.errors import LedgerError
from infra.clock import SystemClock
from infra.leases.ledger_recovery import open_ledger
from infra.ledger.ledger import Ledger
from tests.chaos.flow import live as live_the_flow
from tests.chaos.lost_server import LOST
from tests.chaos.night import OUTSIDE_FAILED, Life, Place, lease_request, live
from tests.chaos.place import NIGHT
from tests.chaos.processes_of_nights import run
from tests.chaos.rows import must_keep_runs, must_not_crash
from tests.chaos.world import World, a_world
from tests.emulators.virtual_clock import EPOCH_S
from tests.pairs import thin_matrix

HOUR_S = 3600.0
STEPS, SIGNALS = ("S1", "S2", "S4", "S8", "S12"), (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with a_world(tmp_path) as made:
        yield made


def live_with_a_full_disk(place: Place) -> None:
    """Limit file sizes to that of the ledger: each write fails as on a full disk."""
    room = place.ledger_file.stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
    live(place, Life(lease_request()))


def live_under_nohup(place: Place) -> None:
    """Ignore SIGHUP, as nohup does."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    live(place, Life(lease_request(), dies_after="S7", dies_by=signal.SIGHUP))


@pytest.mark.parametrize(("step", "sign"), thin_matrix(itertools.product(STEPS, SIGNALS), each=4))
def test_an_interrupted_night_releases_its_machine_itself(world: World, step: str, sign: signal.Signals) -> None:
    run(live, world.place, Life(lease_request(), dies_after=step, dies_by=sign))

    if step == "S12":
        world.reap()  # asked in the middle of giving back, which is not begun anew
    world.must_be_clean()


def test_after_a_second_interrupt_the_reaper_releases_the_machine(world: World) -> None:
    run(live, world.place, Life(lease_request(), dies_after="S12", dies_by=signal.SIGINT, dies_times=2))

    world.reap()

    world.must_be_clean()


def test_a_night_survives_its_terminal(world: World) -> None:
    code = run(live_under_nohup, world.place)

    assert code == 0
    world.must_be_clean()
    assert world.cloud.ledger()[-1].ended is not None
    assert (world.clock.now_s() - EPOCH_S) > Life(lease_request()).work_s


def test_on_a_full_disk_nothing_is_rented(world: World) -> None:
    Ledger(world.place.ledger_file, world.clock)

    code = run(live_with_a_full_disk, world.place)

    assert code == OUTSIDE_FAILED
    assert world.cloud.requests("POST", "/v2/droplets") == []


def test_where_records_cannot_be_written_nothing_is_rented(world: World) -> None:
    nowhere = replace(world.place, data=Path("/proc/self/fdinfo/data"))

    run(live, nowhere, Life(lease_request()))

    assert world.cloud.requests("POST", "/v2/droplets") == []


@pytest.mark.parametrize("left", thin_matrix([0, 100, 4096, 6000], each=2), ids="{} bytes left".format)
def test_a_truncated_ledger_does_not_prevent_the_release(world: World, left: int) -> None:
    run(live, world.place, Life(lease_request(), dies_after="S9"))
    whole = world.place.ledger_file.read_bytes()
    world.place.ledger_file.write_bytes(whole[:left])
    world.wait_for_the_deadline()

    world.reap()

    world.must_be_clean()
    aside = list(world.place.data.glob("ledger.sqlite.broken-*"))
    assert [one.stat().st_size for one in aside] == ([left] if left else [])  # an empty file is an empty ledger


def test_a_ledger_that_is_unreadable_for_another_reason_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "ledger.sqlite").mkdir()

    with pytest.raises(LedgerError):
        open_ledger(tmp_path / "ledger.sqlite", SystemClock(), print)

    assert (tmp_path / "ledger.sqlite").is_dir()


@pytest.mark.parametrize("by_s", [-HOUR_S, HOUR_S], ids=["back", "forth"])
def test_a_clock_that_jumps_by_an_hour_leaks_nothing(world: World, by_s: float) -> None:
    code = run(live, world.place, Life(lease_request(), clock_off_s=by_s))

    assert code == 0
    world.must_be_clean()


@pytest.mark.parametrize("how", LOST)
def test_a_night_does_not_wait_for_a_prefect_server_that_is_lost_while_it_measures(tmp_path: Path, how: str) -> None:
    with a_world(tmp_path / "night") as world:
        code = run(live_the_flow, world.place, Life(lease_request(), lost_server=(how, 2)))

        must_not_crash(world.place)
        must_keep_runs(world.place, NIGHT)
        assert code == 0
        world.must_be_clean()
