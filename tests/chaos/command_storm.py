"""One random night on machines of the command cloud, whose scripts do anything, and the check whether it leaked."""

import random
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from bench.errors import NightbenchError
from bench.machine.names import MachineName
from infra.leases.offers import Choice, LeaseRequest
from infra.ledger.ledger import Ledger
from tests.chaos.computer_faults import draw_computer_faults
from tests.chaos.elsewhere import HERE, Elsewhere, draw_elsewhere
from tests.chaos.engine_faults import draw_faults
from tests.chaos.flow import live, note, reap_and_die, reap_beside, reap_once
from tests.chaos.lost_server import draw_lost_server
from tests.chaos.place import NIGHT, Life, Place
from tests.chaos.power_cut import lose_power
from tests.chaos.processes_of_nights import KILLED, end_well, let_it_catch_up, run, start, wait_for
from tests.chaos.rows import must_keep_leases, must_keep_runs, must_not_crash
from tests.chaos.steps import draw_end
from tests.chaos.strange_loads import draw_strange
from tests.chaos.true_reasons import must_tell_the_truth
from tests.chaos.watchdogs import watch_beside
from tests.chaos.world import PERIOD_S, ROUND_S
from tests.emulators.command_cloud.account import KIND, OTHER_KIND, Account, make_account
from tests.emulators.command_cloud.program import State
from tests.emulators.virtual_clock import VirtualClock
from tests.stepped_clock import STEPS_S

FIRST_SEED = 50_000  # earlier seeds mean the nights that they meant before there was this cloud
ALL_UNTIL = 60_000  # later seeds: a fifth of them
BUDGET_USD = 12.0
OFFERS = tuple(
    {"kind": kind, "usd_per_hour": usd, "region": region, "gpu_vendor": "amd"}
    for kind, usd in ((KIND, 1.99), (OTHER_KIND, 2.49))
    for region in ("east", "west")
)
ANYTHING = ("fail before", "garbage before", "hang before", "flood before")
AFTER = ("fail after", "garbage after", "hang after")
# What each script may do wrong; rent is drawn several times: it is the one call that costs money.
WRONG: dict[str, tuple[str, ...]] = {
    "rent": (*ANYTHING, *AFTER, "others before", "wrong id", "double", "refuse", "kill after", "kill before"),
    "list": (*ANYTHING, "empty", "kill before"),
    "release": (*ANYTHING, *AFTER, "lie", "kill after", "kill before"),
    "offers": (*ANYTHING, "kill before"),
}
CALLS_MAX = {"rent": 3, "list": 40, "release": 4, "offers": 3}
SLOW = ("hang", "flood")
SLOW_MAX = 2  # of a night: each takes seconds of real time
FATES = ("", "", "", "", "stuck", "errored", "errored", "no address")


@dataclass(frozen=True)
class CommandWeather:
    """Everything that is drawn from a seed."""

    seed: int
    life: Life
    faults: tuple[tuple[str, str], ...]  # the script with the number of its call, and what it does
    fates: tuple[str, ...]
    lag_s: float
    gone_lag_s: float
    boot_s: float
    states_now: bool
    loses_records: bool
    reapers: int
    reaper_dies_after: str | None
    reclaimed_after_s: float | None
    watchdog: str  # "killed" at once, "with the night", or "lives"
    boot_off_s: int
    elsewhere: Elsewhere
    is_resumed: bool


def forecast_command(seed: int) -> CommandWeather | None:
    """Draw a night from its seed, the same one each time; None where its machines are not of this cloud."""
    dice = random.Random(f"command {seed}")
    if seed < FIRST_SEED or (seed >= ALL_UNTIL and dice.random() >= 0.2):
        return None
    states_now = dice.random() < 0.7
    drawn = CommandWeather(
        seed=seed,
        life=_life(dice, seed),
        faults=_faults(dice),
        fates=tuple(dice.choice(FATES) for _ in range(dice.choice((0, 0, 1, 2)))),
        lag_s=dice.choice((0.0, dice.uniform(0, 90))),  # below the settle window, which is what it is for
        gone_lag_s=dice.choice((0.0, dice.uniform(0, 90))),
        boot_s=dice.choice((0.0, dice.uniform(0, 60))),
        states_now=states_now,
        loses_records=dice.random() < 0.3,
        reapers=dice.choice((0, 0, 1, 1, 2)),
        reaper_dies_after=dice.choice((None, None, None, "S12", "S13")),
        reclaimed_after_s=dice.uniform(100, 4000) if dice.random() < 0.2 else None,
        watchdog=dice.choice(("killed", "with the night", "lives")),
        boot_off_s=dice.choice(STEPS_S) if dice.random() < 0.3 else 0,
        elsewhere=draw_elsewhere(seed),
        is_resumed=False,
    )
    return _with_computer(_with_engine(drawn))


def _life(dice: random.Random, seed: int) -> Life:
    kinds = dice.choice(((KIND,), (KIND, OTHER_KIND), (OTHER_KIND, KIND)))
    wanted = LeaseRequest(
        tuple(Choice(kind) for kind in kinds),
        minutes=dice.choice((45.0, 90.0, 120.0)),
        budget_usd=BUDGET_USD,
        patience_s=dice.choice((0.0, 600.0)),
    )
    return Life(
        wanted,
        **draw_end(dice),
        seed=seed,
        strange=draw_strange(seed),
        lost_server=draw_lost_server(seed),
    )


def _faults(dice: random.Random) -> tuple[tuple[str, str], ...]:
    found: dict[str, str] = {}
    for _ in range(dice.choice((0, 1, 2, 3, 5, 8))):
        script = dice.choice(("rent", "rent", "rent", "list", "list", "release", "offers"))
        fault = dice.choice(WRONG[script])
        if sum(one.startswith(SLOW) for one in found.values()) < SLOW_MAX or not fault.startswith(SLOW):
            found[f"{script} {dice.randint(1, CALLS_MAX[script])}"] = fault
    return tuple(found.items())


def _with_engine(drawn: CommandWeather) -> CommandWeather:
    """The same night on machines whose engines, GPUs and tools fail."""
    faults, life = draw_faults(drawn.seed), drawn.life
    life = replace(
        life,
        starts=faults.starts,
        loads=faults.loads,
        unfit=faults.unfit,
        telemetry=faults.telemetry,
        work_s=faults.work_s or life.work_s,
        dies_after=None if faults.is_quiet else life.dies_after,
    )
    return replace(drawn, life=life)


def _with_computer(drawn: CommandWeather) -> CommandWeather:
    """The same night on a computer that may lose its power, and whose clock counts where `list` states no time."""
    faults, life = draw_computer_faults(drawn.seed), drawn.life
    if faults.loses_power:
        life = replace(life, loses_power=True, dies_after=faults.dies_after, dies_by=faults.dies_by)
        drawn = replace(drawn, reapers=0, watchdog="killed", is_resumed=faults.is_resumed)
    if not drawn.states_now:
        life, elsewhere = replace(life, clock_off_s=0.0), replace(drawn.elsewhere, clock_off_s=0.0)
        drawn = replace(drawn, elsewhere=elsewhere)
    return replace(drawn, life=life)


def blow_command(weather: CommandWeather, folder: Path, *, has_reaper: bool = True) -> str | None:
    """Run a night whose weather is given; returns what leaked, as a sentence, or None."""
    place = Place("", Path(), "", folder / "clock", folder / "data", scripts=folder / "scripts")
    folder.mkdir()
    clock = VirtualClock(place.clock)
    account = make_account(folder / "scripts", place.clock)
    _set(account, clock, weather)
    _night(account, place, weather)
    try:
        if weather.watchdog == "lives":
            assert account.billed() == [], f"the watchdog left {account.billed()}"
        if weather.is_resumed:
            run(live, place, replace(weather.life, dies_after=None, loses_power=False))
        if has_reaper:
            _morning(account, place, weather)
        _judge(account, place, weather)
    except AssertionError as error:
        return str(error)
    return None


def _set(account: Account, clock: VirtualClock, weather: CommandWeather) -> None:
    reclaimed_s = None if weather.reclaimed_after_s is None else clock.now_s() + weather.reclaimed_after_s
    account.set(
        offers=list(OFFERS),
        faults=dict(weather.faults),
        fates=list(weather.fates),
        lag_s=weather.lag_s,
        gone_lag_s=weather.gone_lag_s,
        boot_s=weather.boot_s,
        states_now=weather.states_now,
        reclaimed_at_s=reclaimed_s,
    )


def _night(account: Account, place: Place, weather: CommandWeather) -> None:
    """The night beside its reapers and its watchdog."""
    beside, end = _seen_by_others(place, weather), place.notes / "end"
    with ExitStack() as stack:
        # First: where the clock was stepped, the others see only the processes that began before they look.
        night = start(live, place, weather.life)
        account.set(night=night.pid)
        for _ in range(weather.reapers):
            stack.callback(end_well, start(reap_beside, beside, PERIOD_S / 2, end))
        watchdog = None if weather.watchdog == "killed" else start(watch_beside, replace(beside, elsewhere=HERE), end)
        if watchdog is not None:
            stack.callback(end_well, watchdog)
        stack.callback(end.touch)
        exit_code = wait_for(night)
        account.set(night=None)
        if weather.life.loses_power and exit_code == KILLED:
            lose_power(place, weather.seed)
        must_tell_the_truth(place, weather.life, exit_code)
        if watchdog is not None and weather.watchdog == "with the night":
            watchdog.kill()
        if weather.loses_records:
            place.ledger_file.unlink(missing_ok=True)
        if weather.reapers:
            let_it_catch_up()
    if weather.elsewhere.has_another_account:
        _reap_with_other_scripts(place, weather)


def _seen_by_others(place: Place, weather: CommandWeather) -> Place:
    return replace(place, boot_off_s=weather.boot_off_s, elsewhere=weather.elsewhere)


def _reap_with_other_scripts(place: Place, weather: CommandWeather) -> None:
    """A round of the reaper with scripts that show nothing of the night, and may conclude nothing from that."""
    other = make_account(place.notes / "other", place.clock)
    other.set(account="team-2")
    _reap(replace(_seen_by_others(place, weather), scripts=other.scripts), weather.seed)
    other.must_be_clean()


def _morning(account: Account, place: Place, weather: CommandWeather) -> None:
    """Rounds of the reaper, an hour apart: with faults until the last deadline, and then once without."""
    clock, seen = VirtualClock(place.clock), _seen_by_others(place, weather)
    deadline = _last_deadline(account, place)
    if weather.reaper_dies_after is not None:
        run(reap_and_die, seen, weather.reaper_dies_after)
    began = clock.now_s()
    while deadline is not None and clock.now() <= deadline:
        _reap(seen, weather.seed)
        clock.sleep(PERIOD_S)
    # Where a stepped clock put every deadline into the past, the last round still comes after what the list lags.
    clock.sleep(max(0.0, began + PERIOD_S - clock.now_s()))
    account.set(faults={})
    _reap(seen, weather.seed)


def _last_deadline(account: Account, place: Place) -> datetime | None:
    names = [MachineName.parse(one["name"]) for one in _ours(account)]
    ends = [name.expires_at for name in names if name is not None and name.expires_at is not None]
    leases = Ledger(place.ledger_file).open_leases() if place.ledger_file.exists() else []
    return max((*ends, *(one.expires_at for one in leases)), default=None)


def _ours(account: Account) -> list[State]:
    return [one for one in account.state()["machines"] if not one["foreign"]]


def _reap(place: Place, seed: int) -> None:
    try:
        reap_once(place, seed)
    except NightbenchError as error:
        note(place, "reaper.log", error)


def _judge(account: Account, place: Place, weather: CommandWeather) -> None:
    """Raise AssertionError where anything is left, was touched, cost too much or lost its row."""
    account.must_be_clean()
    must_not_crash(place)
    machines = {one["id"]: one for one in _ours(account)}
    usd = sum(one["usd_per_hour"] * (one["ended_s"] - one["created_s"]) / 3600 for one in machines.values())
    most_usd = BUDGET_USD + (PERIOD_S + ROUND_S) / 3600 * max(float(str(one["usd_per_hour"])) for one in OFFERS)
    assert usd <= most_usd, f"{usd:.2f} USD were billed, the budget is {BUDGET_USD} USD"
    if weather.reclaimed_after_s is None:
        _must_spare_the_living(place, machines)
    if weather.loses_records or not place.ledger_file.exists():
        return
    attempts = Ledger(place.ledger_file).attempts()
    assert {one["name"] for one in machines.values()} <= {one.name for one in attempts}, "a machine has no attempt"
    must_keep_leases(place, NIGHT)
    must_keep_runs(place, NIGHT)


def _must_spare_the_living(place: Place, machines: dict[str, State]) -> None:
    """Raise AssertionError where a machine that a night still used was released before its lease expired."""
    lost = place.notes / "lost.log"
    for machine_id, at_s in (line.split() for line in lost.read_text().splitlines()) if lost.exists() else ():
        one = machines[machine_id]
        name = MachineName.parse(one["name"])
        assert name is not None
        assert name.expires_at is not None
        is_late = name.expires_at.timestamp() < float(at_s)
        assert one["ended_s"] is None or is_late, f"{one['name']} was released in use"
