"""Run a night on each of its machines: side by side where they are rented, one after the other on this computer."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import count

from prefect import get_run_logger

from bench.errors import HostError, MachinesEndedError, MachineUnfitError, NightbenchError, NoCapacityError
from bench.machine_nights import machine_night, machine_nights
from bench.night_steps import is_replaced
from bench.record import MachineEnd, NightEnd, NightRecord
from flows.rental import release_at_end
from infra.processes.side_by_side import side_by_side
from infra.settings import Settings
from infra.storage import store
from infra.storage.night_ends import nights_in_a_row
from tasks.machine import can_be_replaced

AT_ONCE = 8  # machines of one night, each with a thread of this process

# Runs a machine's night once, on one lease; returns what ended it early, if anything.
Benchmark = Callable[[NightRecord], BaseException | None]


def run_machines(settings: Settings, night: NightRecord, benchmark: Benchmark) -> BaseException | None:
    """Run the missing runs of a night on its machines; record and return the error that ended it early, if any.

    The failure of one machine ends no other.
    """
    parts = [part for part in machine_nights(night) if store.missing_runs(settings.data, part)]
    failures = {name: error for name, error in _outcomes(settings, night, parts, benchmark).items() if error}
    if not failures:
        return None
    is_one = len(machine_nights(night)) == 1
    error = next(iter(failures.values())) if is_one else _together(settings, night, failures)
    error = _with_nights_in_a_row(settings, night, error)
    end = NightEnd(**_end_of(error).model_dump(), machines={} if is_one else _ends(failures))
    store.write_json(store.end_file(settings.data, night.night), end)
    return error


def _outcomes(
    settings: Settings, night: NightRecord, parts: Sequence[NightRecord], benchmark: Benchmark
) -> dict[str, BaseException | None]:
    """What ended each machine's night early, by the machine's name."""
    calls = {part.suite.machine.name or "": partial(_try_machine, settings, part, benchmark) for part in parts}
    if len(calls) == 1 or not night.where.is_rented:  # on this computer each would disturb the other's numbers
        return {name: call() for name, call in calls.items()}
    outcomes: dict[str, BaseException | None] = {}
    try:
        with release_at_end(settings, night.night):  # what a thread that was stopped twice leaves
            outcomes |= side_by_side(calls, AT_ONCE)
    except NightbenchError as error:
        if not any(outcomes.values()):
            raise
        get_run_logger().error("a machine was not released: %s", error)
    return outcomes


def _try_machine(settings: Settings, part: NightRecord, benchmark: Benchmark) -> BaseException | None:
    """Run the missing runs of one machine; where it disappears or is unfit, another one is rented for the rest."""
    name = part.suite.machine.name
    for machines in count(1):
        outcome = benchmark(part)
        is_lost = isinstance(outcome, (HostError, MachineUnfitError)) and can_be_replaced(part)
        # Of a machine that was lost after its last run, nothing is left to run on another.
        written = machine_night(store.read_night(settings.data, part.night), name)
        missing = len(store.missing_runs(settings.data, written)) if is_lost else 0
        if not is_replaced(machines, is_lost=is_lost, missing=missing):
            break
    if isinstance(outcome, BaseException) and name is not None:
        get_run_logger().error("machine %s ended early: %s", name, outcome)
    return outcome


def _together(settings: Settings, night: NightRecord, failures: dict[str, BaseException]) -> BaseException:
    """One error for what ended machines early; a defect of ours is raised as it is."""
    defect = next((error for error in failures.values() if not isinstance(error, NightbenchError)), None)
    if defect is not None:
        return defect
    parts = machine_nights(store.read_night(settings.data, night.night))
    missing = {part.suite.machine.name or "": _missing(settings, part) for part in parts}
    whys = "; ".join(f"{name}: {missing[name]}, because {error}" for name, error in failures.items())
    others = [name for name in missing if name not in failures]
    stands = f"; the runs of {', '.join(others)} are complete" if others else ""
    together = MachinesEndedError(f"{whys}{stands}; run `nightbench run --resume {night.night}` for the missing ones")
    endings = {getattr(error, "ending", None) for error in failures.values()}
    together.ending = endings.pop() if len(endings) == 1 else None
    return together


def _with_nights_in_a_row(settings: Settings, night: NightRecord, error: BaseException) -> BaseException:
    """The same error; one of missing capacity also says for how many nights in a row."""
    if not isinstance(error, NightbenchError) or error.ending is None or error.ending != NoCapacityError.ending:
        return error
    earlier = nights_in_a_row(settings.data, night, error.ending)
    if not earlier:
        return error
    said = type(error)(f"{error}; no capacity for {len(earlier) + 1} nights in a row, since night {earlier[-1]}")
    said.ending = error.ending
    return said


def _missing(settings: Settings, part: NightRecord) -> str:
    """How many of a machine's runs are missing, in words."""
    count = len(store.missing_runs(settings.data, part))
    return f"{count} of its {len(part.runs)} runs {'is' if count == 1 else 'are'} missing"


def _ends(failures: dict[str, BaseException]) -> dict[str, MachineEnd]:
    return {name: _end_of(error) for name, error in failures.items()}


def _end_of(error: BaseException) -> MachineEnd:
    """Why a machine's night failed: the reason of every run of it that was not run."""
    if isinstance(error, NightbenchError):
        return MachineEnd(stage=error.stage, reason=str(error), ending=error.ending)
    return MachineEnd(stage=None, reason=f"{type(error).__name__}: {error}")
