"""The scope of a rented machine: whatever ends a night, and whenever, its machine is released."""

import errno
import os
import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import CodeType, FrameType
from typing import Any
from uuid import uuid4

import pytest
from prefect.client.schemas.objects import State
from prefect.states import Failed

from bench.errors import BadRunsError, HostError, LedgerError, LostConnectionError
from bench.record import NightRecord
from flows.night_hooks import release_after_error, release_leftovers
from flows.nightly import benchmark_machine, try_machines
from flows.rental import release_at_end
from infra.bootstrap import cloud_named, ledger
from infra.clock import SystemClock
from infra.leases.acquire import take_lease
from infra.leases.offers import Choice, LeaseRequest
from infra.ledger.ledger import Intent, Ledger
from infra.loadgen.suite_file import make_night
from infra.settings import Settings
from infra.storage import store
from tasks.machine import as_rented
from tests.flows.conftest import NightFixture
from tests.pairs import IS_SOAK

pytestmark = pytest.mark.usefixtures("nights_without_prefect")

PATIENCE_S = 300.0
OURS = tuple(str(Path(__file__).parents[2] / folder) for folder in ("flows/", "tasks/", "infra/"))


@pytest.fixture
def night(house: NightFixture, monkeypatch: pytest.MonkeyPatch) -> NightRecord:
    """A night on this computer whose machine turns out to be unusable once it is rented."""
    made = make_night(house.suite, "local", poc=True)
    store.write_json(store.night_file(house.data, made.night), made)

    def refuse(*_asked: object) -> None:
        raise HostError("this machine runs no commands")

    # By the one `monkeypatch` of the test: two would undo each other's change in the wrong order.
    monkeypatch.setattr("tasks.machine.wait_for_machine", refuse)
    return made


def run(night: NightRecord) -> None:
    benchmark_machine(night, uuid4())


def must_hold_nothing(house: NightFixture) -> None:
    assert house.leftovers() == []


@dataclass
class Interrupt:
    """Raises KeyboardInterrupt at the n-th instruction of our code after a function returned, as a signal would."""

    after: CodeType
    at: int
    count: int = 0
    has_begun: bool = False
    is_over: bool = False

    def __call__(self, frame: FrameType, event: str, _arg: object) -> Any:
        code = frame.f_code
        if not code.co_filename.startswith(OURS):
            return None
        frame.f_trace_opcodes = self.has_begun
        if code is as_rented.__code__:
            self.is_over = True  # from here on the lease is the flow's
        elif event == "return" and code is self.after:
            self.has_begun = True
        elif event == "opcode" and self.has_begun and not self.is_over:
            self.count += 1
            if self.count == self.at:
                raise KeyboardInterrupt
        return self


def interrupted(night: NightRecord, after: CodeType, at: int) -> int:
    """Run a night that is interrupted at an instruction, 0: at none; how many instructions there were until then."""
    interrupt = Interrupt(after, at)
    sys.settrace(interrupt)
    try:
        run(night)
    except (KeyboardInterrupt, HostError):
        pass
    finally:
        sys.settrace(None)
    return interrupt.count


# A night takes about 0.3 s of CPU, and a soak runs one for each of more than 1000 instructions.
@pytest.mark.timeout(4 * 3600 if IS_SOAK else 600)
@pytest.mark.parametrize("after", [Ledger.intend.__code__, take_lease.__code__], ids=lambda code: str(code.co_name))
def test_an_interrupt_at_any_instruction_after_the_intent_releases_the_machine(
    house: NightFixture, night: NightRecord, after: CodeType
) -> None:
    count = interrupted(night, after, at=0)
    moments = range(1, count + 1)

    assert count > 1000
    for moment in moments if IS_SOAK else random.Random(count).sample(moments, 8):
        assert interrupted(night, after, moment) == moment
        assert house.leftovers() == [], f"interrupted at instruction {moment} of {count}"


def test_a_night_whose_folder_cannot_be_written_releases_its_machine(
    house: NightFixture, night: NightRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(*_asked: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("infra.storage.store.write_json", write)
        with pytest.raises(HostError):  # the disk alone does not end the night
            run(night)

    must_hold_nothing(house)
    (lease,) = ledger(Settings()).leases()
    assert not store.lease_file(house.data, night.night, lease.lease_id).exists()

    release_leftovers(None, None, None)  # type: ignore[arg-type]  # Prefect's, which are not used

    assert store.lease_file(house.data, night.night, lease.lease_id).exists()  # it is written once there is space


def test_a_machine_that_is_lost_after_its_last_run_is_not_replaced(
    house: NightFixture, night: NightRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose(*_asked: object) -> None:
        for run in night.runs:
            store.run_folder(house.data, night.night, run).mkdir(parents=True)
        raise LostConnectionError("the machine is gone")

    monkeypatch.setattr("tasks.machine.wait_for_machine", lose)
    monkeypatch.setattr("flows.machines.can_be_replaced", lambda _night: True)

    failure = try_machines(Settings(), night, uuid4())

    assert isinstance(failure, LostConnectionError)
    assert len(ledger(Settings()).leases()) == 1


def test_a_lease_that_the_flow_never_got_is_released(house: NightFixture, night: NightRecord) -> None:
    settings = Settings()

    with pytest.raises(KeyboardInterrupt), release_at_end(settings, night.night):  # noqa: PT012
        rent(settings, night.night)
        raise KeyboardInterrupt

    must_hold_nothing(house)


def test_of_two_machines_of_a_night_each_keeps_its_lease_and_releases_only_that(house: NightFixture) -> None:
    settings, night = Settings(), "2026-11-21"
    first = rent(settings, night, "a")

    with release_at_end(settings, night, "b"):
        second = rent(settings, night, "b")
        again = rent(settings, night, "a")

    assert again.lease_id == first.lease_id != second.lease_id
    assert [lease.machine for lease in ledger(settings).open_leases()] == ["a"]
    with release_at_end(settings, night):
        pass
    must_hold_nothing(house)


def spoil(ledger_file: Path) -> None:
    ledger_file.write_bytes(b"no database" * 1000)


@pytest.mark.parametrize("lose", [Path.unlink, spoil])
def test_a_lease_that_the_ledger_has_lost_is_released(
    house: NightFixture, night: NightRecord, lose: Callable[[Path], None]
) -> None:
    settings = Settings()

    with release_at_end(settings, night.night) as rental:
        rental.lease = rent(settings, night.night)
        lose(house.data / "ledger.sqlite")

    assert list((house.data / "machines").glob("*")) == []


def test_a_ledger_that_cannot_be_opened_keeps_no_machine(house: NightFixture, night: NightRecord) -> None:
    settings, file = Settings(), house.data / "ledger.sqlite"

    with pytest.raises(LedgerError), release_at_end(settings, night.night) as rental:  # noqa: PT012
        rental.lease = rent(settings, night.night)
        file.unlink()
        file.mkdir()

    assert list((house.data / "machines").glob("*")) == []
    file.rmdir()


def test_the_hook_of_a_living_process_releases_its_own_lease(house: NightFixture) -> None:
    rent(Settings(), "2026-11-21")

    release_leftovers(None, None, None)  # type: ignore[arg-type]  # Prefect's, which are not used

    must_hold_nothing(house)


def test_the_hook_releases_after_an_error_and_not_where_a_night_ends_with_bad_runs(house: NightFixture) -> None:
    night = "2026-11-21"
    rent(Settings(), night)  # by this process: another night of it, while the first one ends
    rejected: State[Any] = Failed(name="Rejected", data=BadRunsError(night, {"rejected": 1}))

    release_after_error(None, None, rejected)  # type: ignore[arg-type]  # Prefect's, which are not used

    assert len(ledger(Settings()).open_leases()) == 1

    release_after_error(None, None, Failed(data=RuntimeError("a bug")))  # type: ignore[arg-type]

    must_hold_nothing(house)


def test_heartbeats_begin_before_the_machine_is_held(house: NightFixture) -> None:
    settings = Settings()
    book = ledger(settings)
    until = datetime.now(UTC) + timedelta(hours=1)

    with release_at_end(settings, "2026-11-21", heartbeat_s=0.02):
        book.intend("l-1", Intent("2026-11-21", "local", 0.0, until, "nb-l-1-a1-x1", kind="local"))
        began = book.lease("l-1").heartbeat_at
        patience = time.monotonic() + PATIENCE_S
        while book.lease("l-1").heartbeat_at == began and time.monotonic() < patience:
            time.sleep(0.02)
        recorded = book.lease("l-1").heartbeat_at

    assert began is not None
    assert recorded is not None
    assert recorded > began
    must_hold_nothing(house)


def rent(settings: Settings, night: str, machine: str | None = None) -> Any:
    request = LeaseRequest((Choice("local"),), minutes=60, machine=machine)
    return take_lease(cloud_named(settings, "local"), ledger(settings), SystemClock(), request, night=night)


def test_a_broken_ledger_does_not_prevent_a_round_of_the_reaper(house: NightFixture) -> None:
    house.data.mkdir(parents=True)
    (house.data / "ledger.sqlite").write_bytes(b"SQLite format 3\0" + 4080 * b"\xff")

    release_leftovers(None, None, None)  # type: ignore[arg-type]  # Prefect's, which are not used

    assert len(list(house.data.glob("ledger.sqlite.broken-*"))) == 1
    assert ledger(Settings()).leases() == []
