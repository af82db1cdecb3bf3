"""The check that each run that a random night planned has one row, and that the row says what happened to it."""

import signal
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.engines.by_name import retry_of
from bench.engines.ladder import fallback_run
from bench.record import NightRecord, PlannedRun, RunRecord
from bench.suite.machine import hardware_of
from flows.ending import INTERRUPTED, TERMINATED
from infra.ledger.lease import Lease
from infra.ledger.ledger import Ledger
from infra.storage import store
from infra.storage.failed_starts import read_failed_starts
from tests.chaos.engine_faults import UNFIT_WORDS, logged_line
from tests.chaos.place import Life, Place, lease_request
from warehouse.rows.records import read_end
from warehouse.rows.run_folder import read_run, run_folders
from warehouse.rows.run_rows import run_rows
from warehouse.rows.unmeasured_rows import not_run_row, place_of
from warehouse.schema.row import Row

MACHINES_MAX = 3
NOTES = ("starts", "loads", "machines", "tools", "strange")  # what a machine notes of itself, each in a file
# What a run that was not measured must not have, and one that was has.
MEASURED = ("output_throughput_tok_per_s", "ttft_p50_ms", "itl_p50_ms", "completed", "total_output_tokens")
STOPS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
STOPPED = "not started: the night was stopped or is still running"


@dataclass(frozen=True)
class _Note:
    """One start, load or machine of a night, as the machine noted it."""

    machine: str
    what: str  # the server, the run or the lease
    failure: str | None


class _Night:
    """Everything that a night left, and everything that was done to it."""

    def __init__(self, place: Place, life: Life) -> None:
        self._place, self._life = place, life
        self.plan: NightRecord = store.read_night(place.data, life.night)
        self.folder = store.night_folder(place.data, life.night)
        self.starts, self.loads, self.machines, self.tools, self.strange = map(self._notes, NOTES)
        self.leases: dict[str, Lease] = {
            one.lease_id: one for one in Ledger(place.ledger_file).leases() if one.night == life.night
        }
        self.records = list(self._records())
        self.failed_starts = read_failed_starts(place.data, life.night)

    def is_stopped_and_billed(self, errors: list[str]) -> bool:
        """Whether a signal stopped it and its release then failed: that is its last word, and no run's reason."""
        is_asked = self._life.dies_after is not None and self._life.dies_by in STOPS
        return is_asked and bool(errors) and all("STILL BILLED" in error for error in errors)

    def _notes(self, name: str) -> list[_Note]:
        lines = _lines(self._place.notes / f"{self._life.night}.{name}")
        return [
            _Note(words[0], words[1], None if words[-1] == "None" else words[-1]) for words in map(str.split, lines)
        ]

    def _records(self) -> Iterator[RunRecord]:
        for file in sorted(self.folder.glob("*/[0-9]*/record.json")):
            yield RunRecord.model_validate_json(file.read_bytes())

    def lost_machines(self) -> set[str]:
        return {line.split()[0] for line in _lines(self._place.notes / f"{self._life.night}.lost")}

    def machine_of(self, lease_id: str) -> str:
        return str(self.leases[lease_id].machine_id)

    def rows(self) -> list[Row]:
        """The rows of the table `measurements`, as a load makes them."""
        folders = [(path, place) for path, place in run_folders(self.folder) if place is not None]
        rows = [run_rows(place, read_run(path)).measurement for path, place in folders]
        known = {place for _, place in folders}
        file = store.end_file(self._place.data, self.plan.night)
        end = read_end(file.read_bytes()) if file.exists() else None
        return rows + [
            not_run_row(self.plan, run, end) for run in self.plan.runs if place_of(self.plan, run) not in known
        ]


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def night_rows(place: Place, night: str) -> list[Row]:
    """The rows of the table `measurements` of a night, as a load makes them."""
    return _Night(place, Life(lease_request(), night=night)).rows()


def must_tell_the_truth(place: Place, life: Life, exit_code: int) -> None:
    """Raise AssertionError where a planned run has no row or two, or a row says another thing than what happened.

    `exit_code`: of the night's process; negative where a signal ended it.
    """
    if not store.night_file(place.data, life.night).exists() or not place.ledger_file.exists():
        return
    night = _Night(place, life)
    _must_have_a_row_each(night)
    _must_climb_the_ladder(night, is_whole=exit_code == 0)
    for row in night.rows():
        must_not_be_zero(row)
        if row["outcome"] == "not-run":
            _must_say_why_it_did_not_run(night, place, row, exit_code)
    for record in night.records:
        _must_be_what_happened(night, record)
    for start in night.failed_starts:
        _must_have_happened(night.starts, night.machine_of(start.lease_id), start.server_id, start.failure)
    _must_be_told(night, is_whole=exit_code == 0)
    _must_replace_no_machine_too_often(night, place)


def _must_have_a_row_each(night: _Night) -> None:
    """One row for each planned run, and no other but those of rungs of the ladder."""
    places = Counter((row["scenario_id"], row["repeat"]) for row in night.rows())
    assert max(places.values(), default=1) == 1, f"a run has two rows: {places}"
    asked = {(run.scenario.scenario_id, run.repeat) for run in night.plan.runs}
    smaller = {(one.scenario_id, one.repeat) for one in night.records if one.asked.fallback_of is not None}
    assert places.keys() == asked | smaller, f"planned {asked}, fallbacks {smaller}, rows of {places.keys()}"


def _must_climb_the_ladder(night: _Night, *, is_whole: bool) -> None:
    """The next rung is measured where memory ran out, and only there."""
    rungs = {(one.asked.fallback_of or one.scenario_id, one.repeat, one.asked.rung) for one in night.records}
    following = set()
    for record in night.records:
        if retry_of(record.asked.engine.name, record.failure) == "ladder":
            run = fallback_run(night.plan, PlannedRun(order=0, repeat=record.repeat, scenario=record.asked))
            following |= set() if run is None else {(run.scenario.fallback_of, run.repeat, run.scenario.rung)}
    climbed = {one for one in rungs if one[2] > 0}
    assert climbed <= following, f"rungs that nothing asked for: {climbed - following}"
    assert not is_whole or climbed == following, f"rungs that were not measured: {following - climbed}"


def must_not_be_zero(row: Row) -> None:
    """A run that was not measured has no numbers, and one that was has them."""
    for name in MEASURED:
        assert (row[name] is not None) == (row["outcome"] == "measured"), f"{row['outcome']}: {name} is {row[name]}"
        assert row[name] != 0, f"{name} is 0"


def _must_say_why_it_did_not_run(night: _Night, place: Place, row: Row, exit_code: int) -> None:
    """A run that was not started says the error that ended the night, and of a night that was killed only that.

    A night that is killed between its record of the error and its last words leaves nothing to compare with.
    """
    assert exit_code != 0, f"a night without an error left a run undone: {row['reason']}"
    errors = _lines(place.notes / "night.log")
    said = str(row["reason"]).removeprefix("not started: ")
    if row["reason"] != STOPPED:
        is_said = any(said.splitlines()[0] in line for line in errors)
        assert is_said or exit_code < 0, f"{said!r} ended no night: {errors}"
    elif exit_code > 0:
        is_stopped = exit_code in {INTERRUPTED, TERMINATED} or night.is_stopped_and_billed(errors)
        assert is_stopped or not errors, f"the reason is unknown though the night ended with {errors}"
    unfit = [one for one in night.machines if one.failure is not None]
    if " is unfit: " in said and unfit and unfit[-1] == night.machines[-1]:
        assert UNFIT_WORDS[str(unfit[-1].failure)] in said, f"{said!r} is not what was unfit: {unfit[-1]}"


def _must_be_what_happened(night: _Night, record: RunRecord) -> None:
    """The outcome, class, line, machine and kind of a run are those of what its machine did."""
    assert record.lease is not None
    lease, machine = night.leases[record.lease.lease_id], record.lease.machine_id
    assert machine == lease.machine_id
    kind = hardware_of(lease.kind or "")
    assert record.asked.machine.kind == kind, f"a run of {record.asked.machine.kind} was measured on {kind}"
    loads = [one for one in night.loads if one.what == f"{record.scenario_id}/{record.repeat}"]
    starts = [one for one in night.starts if (one.machine, one.what) == (machine, record.server_id)]
    strange = [one.failure for one in night.strange if one.what == f"{record.scenario_id}/{record.repeat}"][-1:]
    if strange == ["bug"]:
        assert "KeyError: 'what nobody expects'" in str(record.traceback), (
            f"a bug without its traceback: {record.reason}"
        )
    elif strange == ["drips"]:
        assert "does not respond" in str(record.reason), f"a server that drips, and {record.reason!r}"
    elif record.outcome == "failed" and strange == ["answers"]:
        assert record.reason, "a strange server failed a run without a reason"
        assert record.traceback is None, f"nobody expected what a strange server answered: {record.traceback}"
    elif record.outcome == "measured":
        assert loads, "a run was measured without a load"
        assert (loads[-1].machine, loads[-1].failure) == (machine, None), f"measured, but {loads[-1]}"
        _must_say_what_its_tool_did(night, record)
    else:
        assert record.failure is not None, f"a run failed without a class: {record.reason}"
        assert logged_line(record.failure) in str(record.reason), f"{record.failure}, but {record.reason!r}"
        seen = {one.failure for one in (*loads[-1:], *starts) if one.machine == machine}
        assert record.failure in seen, f"a run failed with {record.failure}, its machine did {seen}"
    for start in record.failed_starts:
        assert start in night.failed_starts, f"a record has a failed start that its night has not: {start}"


def _must_say_what_its_tool_did(night: _Night, record: RunRecord) -> None:
    """A run on GPUs has telemetry, or says why it has none."""
    told = [one for one in night.tools if one.what == f"{record.scenario_id}/{record.repeat}"]
    if not told:
        return
    assert record.host_use is not None
    use = record.host_use
    if told[-1].failure is None:
        assert use.gpu_telemetry == "amd-smi", f"a tool that works was not used: {use}"
    else:
        assert use.unknown.get("gpu_telemetry"), f"{told[-1]}, and the record says nothing of it: {use}"


def _must_have_happened(notes: list[_Note], machine: str, what: str, failure: str | None) -> None:
    assert _Note(machine, what, failure) in notes, f"{what} is said to have failed with {failure} on machine {machine}"


def _must_be_told(night: _Night, *, is_whole: bool) -> None:
    """Every failure that happened is in a record; the last of a machine may be lost with the machine or the night."""
    told = {(night.machine_of(one.lease_id), one.server_id, one.failure) for one in night.failed_starts}
    for record in night.records:
        assert record.lease is not None
        for what in (record.server_id, f"{record.scenario_id}/{record.repeat}"):
            told.add((record.lease.machine_id, what, str(record.failure)))
    for notes in (night.starts, night.loads):
        for at, note in enumerate(notes):
            is_last = note.machine not in {later.machine for later in notes[at + 1 :]}
            is_cut = is_last and (not is_whole or note.machine in night.lost_machines())
            key = (note.machine, note.what, str(note.failure))
            assert note.failure is None or is_cut or key in told, f"no record has {note}"


def _must_replace_no_machine_too_often(night: _Night, place: Place) -> None:
    """At most three machines, the second for a GPU at most; and no fewer where the night ended for a machine.

    What follows a machine that was lost is rented for the loss, whatever its GPU did before.
    """
    used = list(dict.fromkeys(one.machine for one in night.machines))
    most = MACHINES_MAX * len(night.plan.suite.machines)
    assert len(used) <= most, f"{len(used)} machines were used"
    engine = night.plan.suite.engine.name
    failed: list[tuple[str, str | None]] = [(one.lease_id, one.failure) for one in night.failed_starts]
    failed += [(one.lease.lease_id, one.failure) for one in night.records if one.lease is not None]
    of_gpus = {night.machine_of(lease) for lease, failure in failed if retry_of(engine, failure) == "replace_machine"}
    of_gpus -= night.lost_machines()
    assert len(of_gpus) <= 2, f"{len(of_gpus)} machines were replaced for their GPUs"
    rented = [one for one in night.leases.values() if one.rented_at]
    if any(line.startswith("MachineUnfitError") for line in _lines(place.notes / "night.log")):
        assert len(rented) == MACHINES_MAX, f"the night ended for an unfit machine after {len(rented)} machines"
