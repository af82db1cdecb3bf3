"""One random night: its faults, all drawn from one seed, and the check whether anything leaked."""

import itertools
import random
import signal
import sqlite3
import tempfile
import traceback
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from datetime import datetime
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from bench.errors import NightbenchError
from bench.machine.names import ImageName, MachineName
from infra.leases.offers import Choice, LeaseRequest
from infra.ledger.ledger import Ledger
from tests.chaos.command_storm import CommandWeather, blow_command, forecast_command
from tests.chaos.computer_faults import FIRST_SEED, ComputerFaults, draw_computer_faults
from tests.chaos.elsewhere import HERE, Elsewhere, draw_elsewhere
from tests.chaos.engine_faults import EngineFaults, draw_faults
from tests.chaos.flow import live, reap_and_die, reap_beside, reap_once
from tests.chaos.lost_server import draw_lost_server
from tests.chaos.own_storm import OwnWeather, blow_own, forecast_own
from tests.chaos.place import MEMORY, Life, Place
from tests.chaos.power_cut import lose_power
from tests.chaos.processes_of_nights import KILLED, end_well, let_it_catch_up, run, start, wait_for
from tests.chaos.rows import must_keep_rows, must_not_crash
from tests.chaos.steps import STEPS, VOLUME_STEPS
from tests.chaos.strange_loads import draw_strange
from tests.chaos.true_reasons import must_tell_the_truth
from tests.chaos.watchdogs import watch_beside
from tests.chaos.world import PERIOD_S, ROUND_S, World, a_world
from tests.emulators.digitalocean.behaviour import FATES
from tests.emulators.digitalocean.replies import Request
from tests.infra.ledger.upgrades import make_older, upgrade_killed_before_statement
from tests.stepped_clock import STEPS_S

MI300X, SPOT = "gpu-mi300x1-192gb", "gpu-mi355x1-288gb-spot"
USD_PER_HOUR_MAX = 2.97
BESIDE_USD_PER_HOUR = 4.47  # of the second machine of a night on two
BUDGET_USD = 12.0
FIRST_ON_TWO = 30_000  # from this seed on a night rents two machines; earlier seeds keep their meaning
BEFORE_AND_AFTER = ("before", "after", "close", "close_after", "silence_after", "truncated", "empty", "garbage")
# The calls that may fail, and in which phases. A delete may succeed without an effect, which only a look can show.
# The create is listed several times: it is the one call that costs money.
TARGETS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    *(("POST", "/v2/droplets", BEFORE_AND_AFTER),) * 4,
    ("DELETE", r"/v2/droplets/\d+", ("before", "after", "close", "close_after", "silence_after", "lie")),
    ("GET", r"/v2/droplets/\d+", ("before", "close", "garbage", "missing")),
    ("GET", "/v2/droplets", ("before", "close", "truncated", "nothing", "busy")),
    ("GET", "/v2/sizes", ("before", "close", "busy")),
    ("POST", "/v2/account/keys", BEFORE_AND_AFTER),
    ("GET", "/v2/account/keys", ("before", "busy")),
    ("DELETE", r"/v2/account/keys/.+", ("before", "after", "close_after")),
    ("POST", r"/v2/droplets/\d+/actions", ("before", "after", "close_after")),
    ("GET", "/v2/volumes", ("before", "busy")),
    ("GET", "/v2/snapshots", ("before", "close")),
)
VOLUME_TARGETS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    *(("POST", "/v2/volumes", BEFORE_AND_AFTER),) * 2,
    ("GET", "/v2/volumes", ("before", "close", "truncated", "busy")),
    ("GET", r"/v2/volumes/[^/]+", ("before", "close", "garbage", "missing")),
    *(("POST", r"/v2/volumes/[^/]+/actions", BEFORE_AND_AFTER),) * 2,
    ("DELETE", r"/v2/volumes/[^/]+", ("before", "after", "close", "close_after", "silence_after", "lie")),
)
# Faults that consist of a reply.
ANSWERS: dict[str, dict[str, Any]] = {
    "missing": {"phase": "status", "status": 404},
    "nothing": {"phase": "status", "status": 200, "body": {"droplets": [], "links": {}, "meta": {"total": 0}}},
    "busy": {"phase": "status", "status": 429, "retry_after": 20},
}


@dataclass(frozen=True)
class Weather:
    """Everything that is drawn from a seed."""

    seed: int
    life: Life
    faults: tuple[dict[str, Any], ...]
    fates: tuple[str, ...]
    lag: dict[str, float]
    gone_lag: dict[str, float]
    full: tuple[tuple[str, str], ...]
    loses_records: bool
    reapers: int
    reaper_dies_after: str | None
    reclaimed_after_s: float | None
    token_ends_after_s: float | None
    killed_at_call: int | None  # the night's own calls counted, with the effect done and the answer not sent
    flags: dict[str, bool] = field(default_factory=dict)
    watchdog: str = "killed"  # at once, "with the night", or "lives"
    upgrade_dies_before: int | None = None  # the statement of an upgrade of the ledger from its first version
    boot_off_s: int = 0  # in what the reapers and the watchdog see of /proc
    volume_fates: tuple[str, ...] = ()  # of each attach and detach that is asked for; "" is a good one
    elsewhere: Elsewhere = HERE  # where the reapers are
    own: OwnWeather | None = None  # two nights on one host of one's own, after this night
    is_resumed: bool = False  # in the morning, after a power cut
    command: CommandWeather | None = None  # a night on machines of the command cloud, in this one's place


def forecast(seed: int) -> Weather:
    """Draw a night from its seed; the same one each time."""
    dice = random.Random(seed)
    faults = tuple(_fault(dice) for _ in range(dice.choice((0, 1, 2, 3, 5, 8))))
    regions = ("atl1", "tor1", "nyc2")
    drawn = Weather(
        seed=seed,
        life=_life(dice, seed),
        faults=faults,
        fates=tuple(dice.choice(("", "", *sorted(FATES))) for _ in range(dice.choice((0, 0, 1, 2)))),
        # Below the settle window, which is what it is for.
        lag={view: dice.uniform(0, 90) for view in ("get", "list", "tag_list", "name_list", "tags")},
        gone_lag={view: dice.uniform(0, 90) for view in ("get", "list", "tag_list", "name_list")},
        full=tuple((MI300X, region) for region in regions if dice.random() < 0.2),
        loses_records=dice.random() < 0.3,
        reapers=dice.choice((0, 0, 1, 1, 2)),
        reaper_dies_after=dice.choice((None, None, None, "S12", "S13")),
        reclaimed_after_s=dice.uniform(100, 4000) if dice.random() < 0.2 else None,
        token_ends_after_s=dice.uniform(100, 4000) if dice.random() < 0.1 else None,
        killed_at_call=dice.choice((None, dice.randint(1, 15), dice.randint(1, 80))),
        flags={
            "deletes_pending": dice.random() < 0.7,
            "late_snapshots": dice.random() < 0.5,
            "gpus_in_tag_list": dice.random() < 0.7,
            "says_where": dice.random() < 0.5,
        },
    )
    drawn = drawn if dice.random() < 0.5 else _with_volume(drawn, dice)
    drawn = _with_computer(drawn, random.Random(f"computer {seed}"))
    drawn = _with_engine_faults(drawn, draw_faults(seed))
    drawn = replace(drawn, life=replace(drawn.life, strange=draw_strange(seed), lost_server=draw_lost_server(seed)))
    drawn = _with_computer_faults(drawn, draw_computer_faults(seed))
    drawn = replace(drawn, command=forecast_command(seed))
    machines = random.Random(f"machines {seed}")
    return _on_two_machines(drawn, machines) if _has_two(seed) else drawn


def _has_two(seed: int) -> bool:
    """Whether the night of a seed rents two machines: none at first, then all, and later a third."""
    return seed >= FIRST_ON_TWO and (seed < FIRST_SEED or random.Random(f"two {seed}").random() < 1 / 3)


def _on_two_machines(drawn: Weather, dice: random.Random) -> Weather:
    """The same night on two machines at the same time, whose engines do not fail."""
    quiet: dict[str, Any] = {"starts": (), "loads": (), "unfit": (), "telemetry": None, "strange": ()}
    life = replace(drawn.life, **quiet, beside=dice.choice(("gpu-h100x1-80gb", "gpu-h200x1-141gb")))
    full = tuple((str(life.beside), region) for region in ("atl1", "tor1", "nyc2", "ams3") if dice.random() < 0.3)
    return replace(drawn, life=life, full=(*drawn.full, *full), own=None)


def _with_computer(drawn: Weather, dice: random.Random) -> Weather:
    """The same night on a computer with troubles of its own; the numbers of earlier draws stay as they were."""
    return replace(
        drawn,
        # A watchdog has the night's token, and with a revoked one it can do nothing.
        watchdog="killed" if drawn.token_ends_after_s else dice.choice(("killed", "with the night", "lives")),
        upgrade_dies_before=dice.randint(0, 14) if dice.random() < 0.3 else None,
        boot_off_s=dice.choice(STEPS_S) if dice.random() < 0.3 else 0,
        elsewhere=draw_elsewhere(drawn.seed),
        own=forecast_own(drawn.seed),
    )


def _with_engine_faults(drawn: Weather, faults: EngineFaults) -> Weather:
    """The same night on machines whose engines, GPUs and tools fail."""
    life = replace(
        drawn.life,
        starts=faults.starts,
        loads=faults.loads,
        unfit=faults.unfit,
        telemetry=faults.telemetry,
        work_s=faults.work_s or drawn.life.work_s,
    )
    if not faults.is_quiet:
        return replace(drawn, life=life)
    return replace(drawn, life=replace(life, dies_after=None), killed_at_call=None)


def _with_computer_faults(drawn: Weather, faults: ComputerFaults) -> Weather:
    """The same night on a computer that loses its power, which ends every process on it."""
    if not faults.loses_power:
        return drawn
    life = replace(drawn.life, loses_power=True, dies_after=faults.dies_after, dies_by=faults.dies_by)
    return replace(drawn, life=life, reapers=0, watchdog="killed", is_resumed=faults.is_resumed)


def _with_volume(drawn: Weather, dice: random.Random) -> Weather:
    """The same night with its model on a volume, which has faults of its own."""
    faults = tuple(_fault(dice, VOLUME_TARGETS) for _ in range(dice.choice((0, 1, 2, 4))))
    dies_after = dice.choice((drawn.life.dies_after, *VOLUME_STEPS))
    return replace(
        drawn,
        life=replace(drawn.life, volume_gib=20, dies_after=dies_after),
        faults=(*drawn.faults, *faults),
        lag={**drawn.lag, "volume_list": dice.uniform(0, 90)},
        volume_fates=tuple(dice.choice(("", "errored", "stuck")) for _ in range(dice.choice((0, 0, 1, 3, 60)))),
    )


def _fault(dice: random.Random, targets: Sequence[tuple[str, str, tuple[str, ...]]] = TARGETS) -> dict[str, Any]:
    method, path, phases = dice.choice(targets)
    phase = dice.choice(phases)
    told = ANSWERS.get(phase, {"phase": phase, "status": dice.choice((500, 502, 503, 504))})
    nth = dice.randint(1, 2 if (method, path) == ("POST", "/v2/droplets") else 6)
    return {"method": method, "path": path, "nth": nth, "times": dice.randint(1, 3), **told}


def _life(dice: random.Random, seed: int) -> Life:
    # This name has no readable date, so the first reaper deletes it.
    unwanted = str(ImageName("0badc0de", None))
    kinds = dice.choice(((MI300X,), (MI300X, "gpu-mi325x1-256gb"), (SPOT, MI300X)))
    wanted = LeaseRequest(
        tuple(Choice(kind) for kind in kinds),
        minutes=dice.choice((45.0, 90.0, 120.0)),
        budget_usd=BUDGET_USD,
        patience_s=dice.choice((0.0, 600.0)),
    )
    dies = dice.random() < 0.6
    return Life(
        wanted,
        dies_after=dice.choice(tuple(STEPS)) if dies else None,
        dies_by=dice.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)),
        dies_times=dice.choice((1, 1, 2)),
        work_s=dice.choice((600.0, 3000.0)),
        snapshot=unwanted if dice.random() < 0.15 else None,
        clock_off_s=dice.choice((0.0, 0.0, 0.0, -3600.0, 3600.0, -7200.0, 7200.0, 2.0, -2.0)),
        has_full_disk=dice.random() < 0.15,
        seed=seed,
    )


def blow(seed: int, *, has_reaper: bool = True) -> str | None:
    """Run the night of a seed; returns what leaked, as a sentence, or None."""
    weather = forecast(seed) if has_reaper else replace(forecast(seed), reapers=0, watchdog="killed", own=None)
    return blow_weather(weather, has_reaper=has_reaper)


def blow_weather(weather: Weather, *, has_reaper: bool = True) -> str | None:
    """Run a night whose faults are given; returns what leaked, as a sentence, or None."""
    with tempfile.TemporaryDirectory(prefix="chaos-", dir=MEMORY) as folder:
        if weather.command is None:
            breach = _blow(weather, Path(folder), has_reaper=has_reaper)
        else:
            breach = blow_command(weather.command, Path(folder) / "command", has_reaper=has_reaper)
        if breach is None and weather.own is not None:
            breach = blow_own(weather.own, Path(folder) / "own")
        return breach


def _blow(weather: Weather, folder: Path, *, has_reaper: bool) -> str | None:
    with a_world(folder / "night") as world:
        _set(world, weather)
        _night(world, weather)
        if weather.watchdog == "lives":
            must_need_no_reaper(world)
        if weather.is_resumed:
            run(live, world.place, replace(weather.life, dies_after=None, loses_power=False))
        if has_reaper:
            _morning(world, weather)
        return _verdict(world, weather)


def outcome(seed: int, *, has_reaper: bool = True) -> tuple[int, str | None]:
    """A seed and what leaked; a night that fails in the test code counts as a leak too, and the next one runs."""
    try:
        return seed, blow(seed, has_reaper=has_reaper)
    except Exception:  # noqa: BLE001 - whatever it is, it is told with its seed
        return seed, traceback.format_exc()


def _set(world: World, weather: Weather) -> None:
    cloud = world.cloud
    cloud.lag.update(weather.lag)
    cloud.behaviour.gone_lag.update(weather.gone_lag)
    cloud.behaviour.fates.extend(weather.fates)
    for action in ("attach_volume", "detach_volume"):
        cloud.behaviour.action_fates[action].extend(weather.volume_fates)
    cloud.capacity.update(dict.fromkeys(weather.full, 0))
    for name, is_so in weather.flags.items():
        setattr(cloud.behaviour, name, is_so)
    for fault in weather.faults:
        cloud.fault(**fault)
    if weather.reclaimed_after_s is not None:
        cloud.later(weather.reclaimed_after_s, cloud.reclaim_all)


def _night(world: World, weather: Weather) -> None:
    """The night beside its reapers; its token may be revoked before it ends."""
    token = world.cloud.add_token("*")
    world.place = replace(world.place, boot_off_s=weather.boot_off_s, elsewhere=weather.elsewhere)
    if weather.token_ends_after_s is not None:
        world.cloud.later(weather.token_ends_after_s, lambda: world.cloud.revoke(token))
    end = world.place.data.parent / "end"
    with ExitStack() as stack:
        # First: where the clock was stepped, the others see only the processes that began before they look.
        night = start(live, replace(world.place.of(token), boot_off_s=0), weather.life)
        world.cloud.api.before_reply = _killer(night, token, weather.killed_at_call)
        watchdog = _start_beside(stack, world, weather, world.place.of(token), end)
        stack.callback(end.touch)
        exit_code = wait_for(night)
        world.cloud.api.before_reply = None
        if weather.life.loses_power and exit_code == KILLED:
            lose_power(world.place, weather.seed)
        must_tell_the_truth(world.place, weather.life, exit_code)
        if watchdog is not None and weather.watchdog == "with the night":
            watchdog.kill()
        if weather.loses_records:
            world.lose_records()
        if weather.reapers:
            let_it_catch_up()
    if weather.elsewhere.has_another_account:
        _reap_with_another_account(world, weather)


def _start_beside(stack: ExitStack, world: World, weather: Weather, night: Place, end: Path) -> BaseProcess | None:
    """Start the reapers and the watchdog of a night, which end with the stack; the watchdog, unless there is none."""
    for _ in range(weather.reapers):
        stack.callback(end_well, start(reap_beside, world.place, PERIOD_S / 2, end))
    if weather.watchdog == "killed":
        return None
    watchdog = start(watch_beside, night, end)
    stack.callback(end_well, watchdog)
    return watchdog


def _reap_with_another_account(world: World, weather: Weather) -> None:
    """A round of the reaper with a token that sees nothing of the night, and may conclude nothing from that."""
    mine = world.place
    world.place = mine.of(world.cloud.add_account("0ddba11"))
    _reap(world, weather.seed)
    world.place = mine


def _killer(night: BaseProcess, token: str, at_call: int | None) -> Callable[[Request], None] | None:
    """A hook that kills a night with SIGKILL at one of its calls, and not only after a step."""
    if at_call is None:
        return None
    calls = itertools.count(1)

    def kill(request: Request) -> None:
        if request.token == token and next(calls) == at_call:
            night.kill()

    return kill


def _morning(world: World, weather: Weather) -> None:
    """Rounds of the reaper, an hour apart: with faults until the last deadline, and then once without."""
    deadline = _last_deadline(world)
    if weather.upgrade_dies_before is not None and _has_leases(world):
        make_older(world.place.ledger_file)
        run(upgrade_killed_before_statement, world.place.ledger_file, weather.upgrade_dies_before)
    if weather.reaper_dies_after is not None:
        run(reap_and_die, world.place, weather.reaper_dies_after)
    began = world.clock.now_s()
    while deadline is not None and world.clock.now() <= deadline:
        _reap(world, weather.seed)
        world.clock.sleep(PERIOD_S)
    # Where a stepped clock put every deadline into the past, the last round still comes after what the lists lag.
    world.clock.sleep(max(0.0, began + PERIOD_S - world.clock.now_s()))
    world.cloud.api.plan.faults.clear()
    _reap(world, weather.seed)
    if weather.life.snapshot is not None or weather.life.volume_gib is not None:
        # Later rounds find these: a partial snapshot that appears hours after its machine is gone, and a tag of an
        # attachment, which counts as in use for longer than a short lease lasts.
        world.clock.sleep(PERIOD_S)
        _reap(world, weather.seed)


def _last_deadline(world: World) -> datetime | None:
    """The latest deadline of what was rented and of the open leases: of some, no machine was ever created."""
    leases = Ledger(world.place.ledger_file).open_leases() if _has_leases(world) else []
    ends = [one.expires_at for one in leases if one.expires_at is not None]
    return max((*ends, *filter(None, [world.deadline()])), default=None)


def _has_leases(world: World) -> bool:
    """Whether the night's ledger is there and complete."""
    if not world.place.ledger_file.exists():
        return False
    with closing(sqlite3.connect(world.place.ledger_file)) as connection:
        return bool(connection.execute("PRAGMA user_version").fetchone()[0])


def _reap(world: World, seed: int) -> None:
    try:
        reap_once(world.place, seed)
    except NightbenchError as error:
        with (world.place.data.parent / "reaper.log").open("a") as log:
            log.write(f"{type(error).__name__}: {error}\n")


def _verdict(world: World, weather: Weather) -> str | None:
    # The budget limits the lease; the reaper may run a period later, and needs time itself. A night that is taken up
    # again without its ledger does not know what it has spent, and has its budget once more.
    usd_per_hour = USD_PER_HOUR_MAX + (BESIDE_USD_PER_HOUR if weather.life.beside else 0.0)
    budgets = 2 if weather.loses_records and weather.is_resumed else 1
    most_usd = budgets * BUDGET_USD + (PERIOD_S + ROUND_S) / 3600 * usd_per_hour
    try:
        kept = world.volumes()
        world.must_be_clean(most_usd, kept=tuple(kept))
        must_spare_the_living(world, weather)
        must_keep_rows(world)
        must_not_crash(world.place)
        if kept:
            world.must_forget_volumes()
    except AssertionError as error:
        return str(error)
    return None


def must_need_no_reaper(world: World) -> None:
    """Raise AssertionError where a machine is billed although its watchdog has done its work."""
    machines = [one for one in world.cloud.ledger() if one.kind == "droplet" and not one.foreign]
    left = [one.name for one in machines if one.ended is None]
    assert not left, f"the watchdog left {left}"


def must_spare_the_living(world: World, weather: Weather) -> None:
    """Raise AssertionError where a machine that a night still used was destroyed by somebody else than the cloud."""
    lost = world.place.notes / "lost.log"
    if weather.reclaimed_after_s is not None or not lost.exists():
        return
    machines = {one.resource: one for one in world.cloud.ledger() if one.kind == "droplet" and not one.foreign}
    for machine_id, at_s in (line.split() for line in lost.read_text().splitlines()):
        one = machines[machine_id]
        name = MachineName.parse(one.name)
        assert name is not None
        assert name.expires_at is not None
        is_late = name.expires_at.timestamp() < float(at_s)
        assert one.ended is None or is_late, f"{one.name} was destroyed in use"
