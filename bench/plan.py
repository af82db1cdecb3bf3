"""What will be run and in which order; pure, so that a plan can be shown without side effects."""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import PurePath
from types import MappingProxyType

from bench.record import NightRecord, PlannedRun
from bench.repeats import PILOT, PlannedRepeats
from bench.suite.prompts import Prompts
from bench.suite.scenario import Scenario
from bench.suite.suite import Suite
from bench.suite.workload import Workload

NO_PLAN: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True)
class PlanRow:
    """One planned run as the tables show it."""

    order: int
    scenario: str
    scenario_id: str
    repeat: int
    load: str
    requests: int


def order_seed(night: str, suite: Suite) -> int:
    """The seed of a night's order of runs: another each night, and of each seed of a suite."""
    return random.Random(f"{night}/{suite.seed}").getrandbits(31)  # noqa: S311 - an order, not a secret


def plan_runs(
    suite: Suite, seed: int = 0, *, poc: bool = False, planned: Mapping[str, int] = NO_PLAN
) -> tuple[PlannedRun, ...]:
    """Every scenario and repeat in an order that is drawn from `seed`.

    `planned` has the repeats of each scenario id where the suite leaves them to the plan; a scenario's own stay.

    The runs of one machine follow each other, because each machine is a lease of its own, and so do those of a model.

    Shuffled, so that a host that warms up or slows down does not favour the first scenarios. Runs that share a
    server stay together: a restart between them would be measured as well. The servers of variants run their repeats in
    as many turns as the suite has: half of them in the drawn order and the others in its reverse, A B B A, and with
    four turns B A A B after that. `poc` keeps the first scenario, once.
    """
    scenarios = suite.expand()[:1] if poc else suite.expand()
    asked = PILOT if suite.repeats == "plan" else suite.repeats
    own = [entry.repeats for entry in suite.scenarios]
    counts = [
        1 if poc else fixed or planned.get(scenario.scenario_id, asked)
        for scenario, fixed in zip(scenarios, own, strict=False)
    ]
    # The first probe of a search, which comes last, may be equal to another scenario: it is run once for both.
    distinct = {
        (scenario.scenario_id, repeat): scenario
        for scenario, count in zip(scenarios, counts, strict=True)
        for repeat in range(count)
    }
    pairs = [(scenario, repeat) for (_id, repeat), scenario in distinct.items()]
    repeats = Counter(scenario_id for scenario_id, _repeat in distinct)
    servers = sorted({scenario.server_id for scenario in scenarios})
    drawn = random.Random(seed)  # noqa: S311 - an order, not a secret
    drawn.shuffle(servers)
    drawn.shuffle(pairs)
    turns = _turns(suite, scenarios, servers)
    pairs.sort(key=lambda pair: turns[pair[0].server_id, turn_of(pair[1], repeats[pair[0].scenario_id], suite.turns)])
    return tuple(
        PlannedRun(order=order, repeat=repeat, scenario=scenario) for order, (scenario, repeat) in enumerate(pairs)
    )


def turn_of(repeat: int, repeats: int, turns: int) -> int:
    """The turn in which a repeat of so many runs, both from 0: each turn has its share of them."""
    return repeat * turns // repeats


def _turns(suite: Suite, scenarios: Sequence[Scenario], servers: Sequence[str]) -> dict[tuple[str, int], int]:
    """The place of each server's runs in each turn, given the drawn order."""
    turns: dict[tuple[str, int], int] = {}
    for family in _families_in_order(suite, scenarios, servers):
        drawn = sorted(family, key=servers.index)
        begin = len(turns)
        for turn in range(suite.turns):
            # A B, B A, B A, A B: what drifts in a line favours none in two turns, and what bends none in four.
            is_reversed = turn % 2 != turn // 2 % 2
            order = drawn[::-1] if is_reversed else drawn
            first = begin if len(drawn) == 1 else len(turns)
            turns |= {(server, turn): first + place for place, server in enumerate(order)}
    return turns


def _families_in_order(suite: Suite, scenarios: Sequence[Scenario], servers: Sequence[str]) -> list[set[str]]:
    """The families of servers: machines in the order of the file, on each the models and families as drawn."""
    of_server = {one.server_id: one for one in reversed(scenarios)}
    machines = list(dict.fromkeys(one.machine for one in scenarios))
    drawn = list(dict.fromkeys(of_server[server].model for server in servers))

    def place(family: set[str]) -> tuple[int, int, int]:
        first = min(family, key=servers.index)
        one = of_server[first]
        return machines.index(one.machine), drawn.index(one.model), servers.index(first)

    return sorted(_families(suite, scenarios), key=place)


def _families(suite: Suite, scenarios: Sequence[Scenario]) -> list[set[str]]:
    """The servers of the scenarios; those on which the variants of one scenario run are together."""
    of_scenario: dict[str, set[str]] = {}
    for entry, scenario in zip(suite.scenarios, scenarios, strict=False):
        of_scenario.setdefault(entry.base_name, set()).add(scenario.server_id)
    families: list[set[str]] = []
    for servers in of_scenario.values():
        joined = [family for family in families if family & servers]
        families = [family for family in families if family not in joined] + [servers.union(*joined)]
    return families


def model_loads(runs: Sequence[PlannedRun]) -> list[Scenario]:
    """The scenario of each time that an engine loads a model: of a server's start, or of a run without a server.

    A command loads none.
    """

    def start_of(run: PlannedRun) -> tuple[str, int | None]:
        return run.scenario.server_id, run.order if run.scenario.workload.is_offline else None

    starting = (run for run in runs if run.scenario.workload.command is None)
    return [next(same).scenario for _, same in groupby(starting, key=start_of)]


def with_repeats(night: NightRecord, planned: Sequence[PlannedRepeats]) -> NightRecord:
    """The night with so many repeats of each scenario, in the order of its seed."""
    repeats = {one.scenario_id: one.repeats for one in planned}
    runs = plan_runs(night.suite, night.seed, planned=repeats)
    return night.model_copy(update={"runs": runs, "repeats": tuple(planned)})


def on_kind(night: NightRecord, kind: str, done: Sequence[PlannedRun]) -> NightRecord:
    """The night with its runs on another kind of machine, where numbers are others; what is done already stays."""
    runs = tuple(
        run if run in done else run.model_copy(update={"scenario": run.scenario.on(kind)}) for run in night.runs
    )
    machine = night.runs[0].scenario.on(kind).machine  # also where all is done: rungs of the ladder may follow
    return night.model_copy(update={"runs": runs, "suite": night.suite.model_copy(update={"machine": machine})})


def cells(runs: tuple[PlannedRun, ...]) -> list[PlanRow]:
    """The plan as rows for a table."""
    return [
        PlanRow(
            order=run.order,
            scenario=run.scenario.name,
            scenario_id=run.scenario.scenario_id,
            repeat=run.repeat,
            load=describe_load(run.scenario),
            requests=0 if run.scenario.workload.command else run.scenario.workload.request_count,
        )
        for run in runs
    ]


def describe_load(scenario: Scenario) -> str:
    """A scenario's load in words: `128 in, 64 out, concurrency 4`."""
    work = scenario.workload
    if work.command is not None:
        return f"command {work.command.program}"
    drive = f"{'batches of' if work.is_offline else 'concurrency'} {work.concurrency}"
    if work.arrivals == "batch":
        drive = f"all {work.request_count} at once"
    elif work.arrivals == "trace":
        drive = _trace(work)
    elif work.arrivals == "sessions":
        drive = f"{work.concurrency} sessions" + (f" of {_trace(work)}" if work.trace else "")
    elif work.arrivals != "closed":
        drive = f"{work.arrivals} {work.request_rate_per_s:g}/s{_burstiness(work.burstiness)}"
    most = "at most " if work.is_replay else ""
    answer = "embedded" if work.is_embedding else f"{most}{work.osl} out"
    return f"{most}{work.isl} in, {answer}, {drive}{_prompts(work.prompts)}"


def _trace(work: Workload) -> str:
    faster = "" if work.trace_speed == 1 else f" {work.trace_speed:g} times as fast"
    return f"trace {PurePath(work.trace or '').name}{faster}"


def _prompts(prompts: Prompts) -> str:
    """The prompts, if they are not the default: `; shared-prefix prompts as chat (groups 2, prefix_tokens 64)`."""
    if prompts == Prompts():
        return ""
    own = {name: value for name, value in prompts.own_keys.items() if name not in ("sha256", "file")}
    details = [PurePath(prompts.file).name] if prompts.file else []
    details += [f"{name} {value}" for name, value in own.items() if value != Prompts.model_fields[name].default]
    details += [] if prompts.seed is None else [f"seed {prompts.seed}"]
    form = "" if prompts.form == "tokens" else f" as {prompts.form}"
    return f"; {prompts.kind} prompts{form}" + (f" ({', '.join(details)})" if details else "")


def prompt_seed(night: NightRecord, run: PlannedRun) -> int:
    """The seed of a run's prompts: another each night, scenario and repeat, so that no prompt meets its own cache.

    Unless the scenario has a seed of its own: then its prompts are always the same.
    """
    fixed = run.scenario.workload.prompts.seed
    if fixed is not None:
        return fixed
    return random.Random(f"{night.night}/{run.scenario.scenario_id}/{run.repeat}").getrandbits(31)  # noqa: S311


@dataclass(frozen=True)
class ConversationShare:
    """Which part of a file of conversations is a run's: each `shares`-th from `share` on, in a drawn order."""

    order_seed: int
    share: int = 0
    shares: int = 1


def conversation_share(night: NightRecord, run: PlannedRun) -> ConversationShare:
    """A run's part of its file: all runs of a night share one order, so that no two take the same conversation.

    A run on a rung of the ladder has the part of the run that it stands for.
    """
    prompts = run.scenario.workload.prompts
    if prompts.seed is not None:
        return ConversationShare(prompts.seed)
    alike = [one for one in night.runs if _takes_turns(one, prompts)]
    order_seed = random.Random(f"{night.night}/{prompts.sha256}").getrandbits(31)  # noqa: S311 - load, not secrets
    share = next(place for place, one in enumerate(alike) if _planned(one) == _planned(run))
    return ConversationShare(order_seed, share, len(alike))


def _planned(run: PlannedRun) -> tuple[str, int]:
    """The scenario's id as the plan has it, without the ladder, and the repeat."""
    return run.scenario.fallback_of or run.scenario.scenario_id, run.repeat


def _takes_turns(run: PlannedRun, prompts: Prompts) -> bool:
    theirs = run.scenario.workload.prompts
    return theirs.kind == prompts.kind and theirs.sha256 == prompts.sha256 and theirs.seed is None


def _burstiness(shape: float | None) -> str:
    return "" if shape is None else f" of burstiness {shape:g}"
