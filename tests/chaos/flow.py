"""One night of the real flow, and one round of the real reaper; each can run in a process of its own.

Only three things are not the real ones: Prefect's engine, which calls the same functions; time, which passes when
somebody waits; and what runs on the rented machine.
"""

import errno
import logging
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import lru_cache
from pathlib import Path

import pytest
from pydantic import BaseModel

from bench.errors import NightbenchError
from bench.machine_nights import shares_of
from bench.record import NightRecord
from bench.suite.machine import Alternative, Machine
from flows.ending import exit_code_of, handle_stop_signals
from flows.night_hooks import release_leftovers
from flows.nightly import try_machines
from infra import bootstrap
from infra.clock import Clock, SystemClock
from infra.clouds.cloud import Cloud
from infra.clouds.digitalocean import opening
from infra.clouds.digitalocean.client import Calls
from infra.leases import leftovers
from infra.leases.reaper import Reaped
from infra.loadgen.suite_file import make_night
from infra.processes.identity import own_start
from infra.reporting import silent
from infra.settings import Settings
from infra.storage import store
from tasks.artifacts import start_progress
from tasks.planning import hold_machine
from tests.chaos.clocks import FollowingClock, WanderingClock
from tests.chaos.elsewhere import another_namespace
from tests.chaos.lost_server import lost_server
from tests.chaos.machine import RentedMachine
from tests.chaos.own_host import TARGET, HeldMachine, reached
from tests.chaos.place import CRASH, HostFault, Life, Place
from tests.chaos.power_cut import syncs_noted
from tests.chaos.steps import Steps
from tests.emulators.virtual_clock import VirtualClock
from tests.flows.without_prefect import without_prefect
from tests.stepped_clock import stepped_clock

SOURCE = f"hf:org/model@{40 * '0'}"
OUTSIDE_FAILED = 3
SCRIPT_S = 3.0  # of real time for a script: one that hangs takes so long
WATCHED = "watched.log"  # the leases of a night that are to be watched
_NEEDED = {"PATH", "HOME", "LANG", "TMPDIR"}
SUITE = Path(__file__).parents[2] / "suites" / "local.toml"


def without_added_repeats(night: NightRecord) -> NightRecord:
    """The night with the runs of its plan and no others, which a storm counts."""
    quality = night.suite.quality.model_copy(update={"half_width_max": None})
    return night.model_copy(update={"suite": night.suite.model_copy(update={"quality": quality})})


PLAN = without_added_repeats(make_night(SUITE, "digitalocean", poc=False, is_draft=True))


@contextmanager
def surroundings(
    place: Place, clock: Clock, seed: int = 0, host_faults: tuple[HostFault, ...] = ()
) -> Iterator[pytest.MonkeyPatch]:
    """Let this process have the place's settings, its clock, and one connection to its cloud or its host."""
    environment = {
        "NIGHTBENCH_DATA": str(place.data),
        "NIGHTBENCH_DO_TOKEN": place.token,
        "NIGHTBENCH_ACCEPT_RISK": "1",
        "NIGHTBENCH_DO_ENDPOINT": place.url,
        "NIGHTBENCH_DO_CA": str(place.ca),
        "NIGHTBENCH_DO_CONNECT_TIMEOUT_S": "5",
        "NIGHTBENCH_DO_READ_TIMEOUT_S": "0.5",
    }
    if place.scripts is not None:
        environment |= {
            "NIGHTBENCH_COMMAND_CLOUD": str(place.scripts),
            "NIGHTBENCH_COMMAND_TIMEOUT_S": f"{SCRIPT_S:g}",
            "NIGHTBENCH_COMMAND_LAG_S": f"{120 - SCRIPT_S:g}",
        }
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        for name in os.environ.keys() - _NEEDED:  # each call to a cloud looks through all of them for a proxy
            patch.delenv(name)
        for name, value in environment.items():
            patch.setenv(name, value)
        for name in ("now", "monotonic", "sleep"):
            patch.setattr(SystemClock, name, lambda _self, *given, name=name: getattr(clock, name)(*given))
        patch.setitem(Calls.__init__.__kwdefaults__ or {}, "jitter", random.Random(seed).random)
        patch.setattr(opening, "open_cloud", _connected_once(opening.open_cloud))
        # To look through all processes of this computer costs more than the rest of a night; a storm starts none.
        patch.setattr("infra.processes.detached.orphans", lambda *_where: [])
        # A night judges nothing here, and what judges takes seconds to import.
        patch.setattr("flows.serving.imported_meanwhile", nullcontext)
        stack.enter_context(without_prefect())
        stack.enter_context(reached(place, host_faults))
        if place.boot_off_s:
            stack.enter_context(stepped_clock(_folder(stack, place), place.boot_off_s))
        yield patch


def _folder(stack: ExitStack, place: Place) -> Path:
    """A folder among those of the storm, which removes it where a night that is killed does not."""
    return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="proc-", dir=place.clock.parent)))


def _connected_once(connect: Callable[[Settings], Cloud]) -> Callable[[Settings], Cloud]:
    cached = lru_cache(lambda _token: connect(Settings()))
    return lambda settings: cached(settings.do_token)


def live(place: Place, life: Life) -> None:
    """Rent, work and release, unless killed on the way; exits with a night's exit code."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # a storm that `nohup` started draws the same nights
    handle_stop_signals(place.data)
    logging.disable()
    try:
        _live(place, life, Steps(life.dies_after, life.dies_by, life.dies_times))
    except NightbenchError as error:
        note(place, "night.log", error)
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, SystemExit) as stop:
        sys.exit(exit_code_of(stop))
    except Exception:
        (place.notes / CRASH).write_text(traceback.format_exc())
        raise


def _live(place: Place, life: Life, steps: Steps) -> None:
    clock = WanderingClock(_clock_of(place, life))
    with surroundings(place, clock, life.seed, life.host_faults) as patch, ExitStack() as stack:

        def step(seconds: float) -> None:
            clock.step(seconds)
            stack.enter_context(stepped_clock(_folder(stack, place), round(seconds)))

        patch.setenv("NIGHTBENCH_CAPACITY_WAIT_S", str(life.request.patience_s))
        settings, night = Settings(), plan_of(life, _target_of(place))
        kind = RentedMachine if place.own_host is None else HeldMachine
        _rent_machines_of_paper(
            patch, lru_cache(lambda lease_id: kind(place, life, steps, lease_id, step, settings)), steps
        )
        if life.loses_power:
            stack.enter_context(syncs_noted(place))
        if life.has_full_disk:
            patch.setattr(store, "write_json", _without_reports(store.write_json))
        patch.setattr("infra.leases.watched_ledger.start_watchdog", _note_watchdog(place))
        steps.watch()
        night = _planned(place, night)
        steps.after("S0")
        if life.lost_server is not None:
            stack.enter_context(lost_server(place, life.lost_server))
        with _hooks(), hold_machine(settings, night.target, None, wait=life.waits):
            progress = start_progress(night, len(store.missing_runs(settings.data, night)))
            failure = try_machines(settings, night, progress, wait=life.waits)
        if failure is not None:
            _release_as_a_hook()
            raise failure


def _target_of(place: Place) -> str:
    if place.own_host is not None:
        return TARGET
    return "digitalocean" if place.scripts is None else "command"


def _planned(place: Place, night: NightRecord) -> NightRecord:
    """The plan on disk of a night that is resumed; of a new one, this plan, which then is there."""
    if store.night_file(place.data, night.night).exists():
        return store.read_night(place.data, night.night)
    store.write_json(store.night_file(place.data, night.night), night)
    return night


def _clock_of(place: Place, life: Life) -> Clock:
    others = life.follows
    return VirtualClock(place.clock) if others is None else FollowingClock(place.clock, others.exists)


def _note_watchdog(place: Place) -> Callable[[Path, str], None]:
    """What a night calls to start a watchdog: it notes the lease for the process that watches."""

    def start(_ledger_file: Path, lease_id: str) -> None:
        with (place.notes / WATCHED).open("a") as log:
            log.write(f"{lease_id} {os.getpid()} {own_start()}\n")

    return start


@contextmanager
def _hooks() -> Iterator[None]:
    """What Prefect calls when a flow has failed or crashed."""
    try:
        yield
    except BaseException:
        _release_as_a_hook()
        raise


def _release_as_a_hook() -> None:
    release_leftovers(None, None, None)  # type: ignore[arg-type]  # the flow's hook, which uses none of them


def _rent_machines_of_paper(
    patch: pytest.MonkeyPatch, machine_of: Callable[[str], RentedMachine], steps: Steps
) -> None:
    """Let what is rented be these machines, which are reached without SSH."""

    def boot(*_asked: object) -> None:
        SystemClock().sleep(60.0)
        steps.after("S5")

    for made in ("_kept_executor", "_new_executor"):
        patch.setattr(bootstrap, made, lambda _access, context, *_more: machine_of(context[0]))
    patch.setattr(bootstrap, "wait_until_ready", boot)
    patch.setattr("tasks.volumes.SshHost", NoHost)


class NoHost:
    """A connection to a machine that does whatever it is told."""

    def __init__(self, *_access: object, **_patience: object) -> None:
        """Connect to nothing."""

    def output_of(self, *_command: object, **_patience: object) -> str:
        return ""

    def close(self) -> None:
        """Nothing is open."""


def _without_reports(write: Callable[[Path, BaseModel], None]) -> Callable[[Path, BaseModel], None]:
    def write_others(path: Path, value: BaseModel) -> None:
        if path.parent.name == "leases":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        write(path, value)

    return write_others


def plan_of(life: Life, target: str) -> NightRecord:
    """The plan of a night with two runs; on two machines each has a scenario of its own."""
    first, *others = life.request.choices
    machine = Machine(
        name=None if life.beside is None else "first",
        kind=first.kind,
        alternatives=tuple(Alternative(kind=other.kind, region=other.region) for other in others),
        regions=life.request.regions,
        spot=life.request.spot,
        budget_usd=life.request.budget_usd,
        lease_minutes=int(life.request.minutes),
    )
    model = PLAN.suite.model.model_copy(update={"source": SOURCE, "cache_volume_gib": life.volume_gib})
    suite = PLAN.suite.model_copy(update={"machine": machine, "model": model})
    drawn = PLAN.runs if life.beside is None else tuple({run.scenario.name: run for run in PLAN.runs}.values())
    runs = tuple(
        run.model_copy(update={"scenario": run.scenario.model_copy(update={"model": model})}) for run in drawn[:2]
    )
    plan = PLAN.model_copy(update={"night": life.night, "target": target, "suite": suite, "runs": runs})
    return plan if life.beside is None else _on_two(plan, life.beside)


def _on_two(plan: NightRecord, kind: str) -> NightRecord:
    """The plan with its second run on another machine, within one budget."""
    first = plan.suite.machine
    second = first.model_copy(update={"name": "second", "kind": kind, "alternatives": (), "spot": "never"})
    machines = [one.model_copy(update={"budget_usd": None}) for one in (first, second)]
    runs = tuple(
        run.model_copy(update={"scenario": run.scenario.model_copy(update={"machine": Machine(name=machine.name)})})
        for run, machine in zip(plan.runs, machines, strict=True)
    )
    names = {run.scenario.name: machine for run, machine in zip(runs, machines, strict=True)}
    entries = tuple(
        entry.model_copy(update={"machine": names[entry.name]}) for entry in plan.suite.scenarios if entry.name in names
    )
    changes = {"machine": machines[0], "scenarios": entries, "budget_usd": first.budget_usd}
    suite = plan.suite.model_copy(update=changes)
    shares = shares_of(first.budget_usd, machines, {})
    return plan.model_copy(update={"suite": suite, "runs": runs, "budget_shares": shares})


def reap_once(place: Place, seed: int = 0) -> Reaped:
    """One round of the reaper, with the records that are left, from wherever it is."""
    clock = WanderingClock(VirtualClock(place.clock))
    clock.step(place.elsewhere.clock_off_s)
    with surroundings(place, clock, seed), ExitStack() as stack:
        if place.elsewhere.is_in_another_namespace:
            stack.enter_context(another_namespace(_folder(stack, place)))
        return leftovers.release_leftovers(place.data, place.ledger_file, clouds_of(place, Settings()), say=silent)


def clouds_of(place: Place, settings: Settings) -> dict[str, Cloud]:
    """The clouds that a reaper of this place looks at."""
    if place.own_host is not None:
        return bootstrap.clouds(settings)
    target = _target_of(place)
    return {target: bootstrap.cloud_named(settings, target)}


def reap_and_die(place: Place, step: str) -> None:
    """A reaper that is killed during its round."""
    Steps(step).watch()
    reap_once(place)


def reap_beside(place: Place, period_s: float, until: Path) -> None:
    """A reaper beside the night: a round each period of the night's time, until the file `until` is there.

    It waits for the clock and never moves it, or its idle hours would be the night's.
    """
    clock = VirtualClock(place.clock)
    due = clock.now_s()
    while not until.exists():
        if clock.now_s() >= due:
            try:
                reap_once(place)
            except NightbenchError as error:
                note(place, "reaper.log", error)
            due = clock.now_s() + period_s
        time.sleep(0.02)


def note(place: Place, name: str, error: NightbenchError) -> None:
    """Keep an error for whoever looks at this night."""
    with (place.notes / name).open("a") as log:
        log.write(f"{type(error).__name__}: {error}\n")
