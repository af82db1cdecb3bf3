"""How long a night takes and what it costs: arithmetic over the catalogue's speeds, stage by stage.

A load takes what its bytes and operations take at the shares of the peaks that the catalogue states. Nothing here is
measured: each stage names its basis, and an unknown stage counts with its timeout.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bench.catalog.catalog import Catalog
from bench.catalog.rows import CatalogModel, MachineKind
from bench.cost.replica import replica_of, weights_bytes
from bench.physics import Group, least_step_s, least_ttft_s
from bench.plan import model_loads
from bench.record import PlannedRun
from bench.search.search import loads_of
from bench.suite.control import Control
from bench.suite.scenario import Scenario
from bench.suite.suite import Suite

MEASURE = "measure"  # the stage that a night is for
ADDED = "added repeats"
LM_EVAL = "lm-eval"
CANARY = "canary"
CONTROL = "control"
PROFILE = "profile"


@dataclass(frozen=True)
class HostPlan:
    """Where a night would run: the machine as the catalogue has it, what is ready on it, and its price."""

    usd_per_hour: float
    size: MachineKind | None = None  # None: a machine that the catalogue does not know
    has_snapshot: bool = False  # the software is there when it boots
    has_new_build: bool = False  # the engine has a newer build than the software that is there
    has_model: bool = False  # an earlier night left the weights there: they are verified again, and not fetched
    is_own: bool = False  # not rented: no boot and no release
    download_bytes_per_s: float | None = None  # None: the catalogue's


@dataclass(frozen=True)
class Stage:
    """One stage: `seconds` is what it takes, `billed_s` what it adds to the bill beside what runs with it."""

    name: str
    seconds: float
    billed_s: float
    basis: str
    scenario: str | None = None
    runs: int = 1
    is_known: bool = True  # False: only a bound

    def usd(self, usd_per_hour: float) -> float:
        """The stage's cost."""
        return self.billed_s / 3600 * usd_per_hour


@dataclass(frozen=True)
class Estimate:
    """A night's stages in their order, and the price they run at."""

    stages: tuple[Stage, ...]
    usd_per_hour: float
    minimum_s: float  # that is billed whatever happens

    @property
    def billed_s(self) -> float:
        """Seconds on the bill."""
        return max(self.minimum_s, sum(stage.billed_s for stage in self.stages))

    @property
    def usd(self) -> float:
        """What the machine costs."""
        return self.billed_s / 3600 * self.usd_per_hour

    @property
    def measuring_share(self) -> float:
        """The part of the bill in which something is measured."""
        return sum(stage.billed_s for stage in self.stages if stage.name == MEASURE) / self.billed_s

    @property
    def is_known(self) -> bool:
        """Whether every stage is known."""
        return all(stage.is_known for stage in self.stages)


def estimate_night(suite: Suite, runs: Sequence[PlannedRun], site: HostPlan, catalog: Catalog) -> Estimate:
    """Every stage from the first billed second to the last; runs of one scenario are one stage."""
    pace = catalog.pace
    boot = Stage("boot", pace["boot_s"], pace["boot_s"], "until the first command runs")
    bring_up = (
        *(() if site.is_own else (boot,)),
        *_beside(_software(pace, site), _download(suite, site, catalog)),
        _canaries(pace),
        Stage("calibrate", pace["calibration_s"], pace["calibration_s"], "of the load client"),
        *_control(suite.control),
    )
    ending = Stage("release", pace["release_s"], pace["release_s"], "until the delete is accepted")
    servers = _servers(suite, runs, site, catalog)
    loads = (*_loads(suite, runs, site, catalog), *_tasks(suite, runs), *_traces(suite, runs, servers))
    stages = (*bring_up, *servers, *loads, *(() if site.is_own else (ending,)))
    return Estimate(stages, site.usd_per_hour, pace["gpu_minimum_s"] if site.usd_per_hour else 0.0)


def expected_s(estimate: Estimate) -> dict[str, float]:
    """Seconds that one start of each stage takes; a scenario is looked up by its own name."""
    return {stage.scenario or stage.name: stage.seconds / stage.runs for stage in estimate.stages}


def estimate_prepare(site: HostPlan, catalog: Catalog) -> Estimate:
    """What building the golden snapshot takes: a machine, its software, and the snapshot of it."""
    pace = catalog.pace
    snapshot_s = pace["snapshot_gb"] * pace["snapshot_s_per_gb"]
    stages = (
        Stage("boot", pace["boot_s"], pace["boot_s"], "until the first command runs"),
        _software(pace, replace(site, has_snapshot=False)),
        Stage("snapshot", snapshot_s, snapshot_s, f"{pace['snapshot_gb']:g} GB at {pace['snapshot_s_per_gb']:g} s/GB"),
        Stage("release", pace["release_s"], pace["release_s"], "until the delete is accepted"),
    )
    return Estimate(stages, site.usd_per_hour, pace["gpu_minimum_s"])


def request_s(scenario: Scenario, model: CatalogModel, group: Group, pace: Mapping[str, float]) -> float:
    """Seconds of one whole request among `concurrency` others, at the stated shares of the peaks."""
    work = scenario.workload
    batch = work.in_flight
    mean_context = work.isl + work.osl / 2
    tpot_s = least_step_s(model, group, batch, mean_context) / pace["decode_share"]
    # Prompts of one wave wait for each other: the GPU computes one after the other.
    ttft_s = (batch + 1) / 2 * least_ttft_s(model, group, work.isl) / pace["prefill_share"]
    return ttft_s + (work.osl - 1) * tpot_s


def _canaries(pace: Mapping[str, float]) -> Stage:
    seconds = 2 * pace["canary_s"]
    return Stage(CANARY, seconds, seconds, "before the first server and after the last", runs=2)


def _control(control: Control | None) -> tuple[Stage, ...]:
    """The control of each lease; only its timeout is known."""
    if control is None:
        return ()
    seconds = control.timeout_s
    return (Stage(CONTROL, seconds, seconds, f"{control.model.name}: at most control.timeout_s", is_known=False),)


def _software(pace: Mapping[str, float], site: HostPlan) -> Stage:
    if site.has_snapshot:
        there = "already installed" if site.is_own else "in the snapshot"
        size = pace["engine_layers_bytes"] if site.has_new_build else 0.0
        pull_s = size / (site.download_bytes_per_s or pace["download_bytes_per_s"])
        basis = f"{there}, but for {size / 1e9:.0f} GB of a new build's layers" if size else there
        return Stage("software", pull_s, pull_s, basis)
    return Stage("software", pace["software_s"], pace["software_s"], "install or pull the engine and driver tools")


def _download(suite: Suite, site: HostPlan, catalog: Catalog) -> Stage:
    """Every model of the suite, one after another; one that the catalogue lacks adds nothing that is known."""
    pace = catalog.pace
    sizes = {model.source: weights_bytes(model, suite.with_model(model).engine, catalog) for model in suite.models}
    known = [size for size in sizes.values() if size is not None]
    unknown = [source for source, size in sizes.items() if size is None]
    lacking = f"{', '.join(unknown)} is not in the catalogue"
    if not known:
        return Stage("model", 0.0, 0.0, lacking, is_known=False)
    size, rate = sum(known), site.download_bytes_per_s or pace["download_bytes_per_s"]
    fetch_s = 0.0 if site.has_model else size / rate
    seconds = fetch_s + size / pace["verify_bytes_per_s"]
    fetched = "already there," if site.has_model else f"downloaded at {rate / 1e6:.0f} MB/s,"
    several = f" of {len(known)} models" if len(known) > 1 else ""
    basis = f"{size / 1e9:.0f} GB{several} {fetched} verified at {pace['verify_bytes_per_s'] / 1e6:.0f} MB/s"
    return Stage("model", seconds, seconds, f"{basis}; {lacking}" if unknown else basis, is_known=not unknown)


def _beside(one: Stage, other: Stage) -> tuple[Stage, Stage]:
    """Two stages that run at the same time: the shorter adds nothing to the bill."""
    shorter, longer = sorted((one, other), key=lambda stage: stage.seconds)
    if not shorter.seconds:
        return one, other
    parallel = replace(shorter, billed_s=0.0, basis=f"{shorter.basis}; in parallel with {longer.name}")
    return (parallel, other) if shorter is one else (one, parallel)


def _servers(suite: Suite, runs: Sequence[PlannedRun], site: HostPlan, catalog: Catalog) -> tuple[Stage, ...]:
    """One cold start for each server that the plan needs, and for each run that loads the model itself."""
    pace = catalog.pace
    started = model_loads(runs)
    if not started:
        return ()
    sizes = [weights_bytes(one.model, one.engine, catalog) for one in started]
    known = [size or 0.0 for size in sizes]
    total = sum(known) / pace["weights_load_bytes_per_s"] + len(started) * pace["engine_init_s"]
    each = " to ".join(dict.fromkeys(f"{size / 1e9:.0f}" for size in (min(known), max(known))))
    basis = f"{each} GB of weights read, then profiling and graph capture"
    # An image is built without starting the engine; only a host of one's own keeps the kernels of an earlier night.
    has_kernels = site.is_own and site.has_snapshot
    is_aiter = any(engine.environment.get("VLLM_ROCM_USE_AITER") == "1" for engine in suite.engines)
    if is_aiter and not has_kernels:
        total += pace["jit_build_s"]
        basis += ", kernels compiled once"
    return (Stage("serve", total, total, basis, runs=len(started), is_known=None not in sizes),)


def _loads(suite: Suite, runs: Sequence[PlannedRun], site: HostPlan, catalog: Catalog) -> tuple[Stage, ...]:
    pace = catalog.pace
    counts = Counter(run.scenario.name for run in runs)
    scenarios = {run.scenario.name: run.scenario for run in runs}
    stages = []
    for name in (entry.name for entry in suite.scenarios if entry.name in counts):
        course = loads_of(suite, scenarios[name])
        loads = [_load_s(suite, one, site, catalog) for one in course]
        count, spent = counts[name] * len(course), counts[name] * sum(seconds for seconds, _basis, _known in loads)
        _seconds, basis, is_known = loads[0]
        if suite.search_of(name) is not None:
            basis, is_known = f"at most {len(course)} probes", False
        stages.append(Stage(MEASURE, spent, spent, basis, name, count, is_known))
    stages += _added(suite, stages)
    count = sum(stage.runs for stage in stages if stage.name == MEASURE)
    rest = count * pace["run_overhead_s"]
    return (*stages, Stage("keep", rest, rest, "counters, hashes, fetching run folders", runs=count))


def _added(suite: Suite, loads: Sequence[Stage]) -> list[Stage]:
    """The repeats that a night adds where they do not agree, if all of them use up the time of their scenario."""
    if suite.quality.half_width_max is None:
        return []
    repeated = [one for one in loads if one.runs > 1 and suite.search_of(one.scenario or "") is None]
    spent = sum(max(0.0, suite.quality.scenario_s - one.seconds) for one in repeated)
    if suite.quality.runs_s is not None:
        spent = min(spent, max(0.0, suite.quality.runs_s - sum(one.seconds for one in loads)))
    basis = "where repeats do not agree: at most quality.scenario_s of each scenario, quality.runs_s of all"
    return [Stage(ADDED, spent, spent, basis, is_known=False)] if spent else []


def _tasks(suite: Suite, runs: Sequence[PlannedRun]) -> tuple[Stage, ...]:
    """The lm-eval tasks of each server; only their timeout is known."""
    asked = suite.quality.lm_eval
    if asked is None:
        return ()
    count = len({run.scenario.server_id for run in runs if not run.scenario.workload.is_offline})
    total = count * asked.timeout_s
    basis = f"{', '.join(asked.tasks)}: at most quality.lm_eval.timeout_s"
    return (Stage(LM_EVAL, total, total, basis, runs=count, is_known=False),)


def _traces(suite: Suite, runs: Sequence[PlannedRun], servers: Sequence[Stage]) -> tuple[Stage, ...]:
    """The profiler's traces: each starts a server as a measurement does, and its few requests add little to that."""
    names = {run.scenario.scenario_id: run.scenario.name for run in runs if not run.scenario.workload.is_offline}
    count = 0 if suite.profile is None else sum(map(suite.profile.has, names.values()))
    if not count or not servers:
        return ()
    each = servers[0].seconds / servers[0].runs
    basis = "a server of its own for each trace"
    return (Stage(PROFILE, count * each, count * each, basis, runs=count, is_known=servers[0].is_known),)


def _load_s(suite: Suite, scenario: Scenario, site: HostPlan, catalog: Catalog) -> tuple[float, str, bool]:
    known = replica_of(scenario.model, scenario.engine, scenario.machine, site.size, catalog)
    work = scenario.workload
    if work.command is not None:
        return work.command.timeout_s, "command: at most its timeout_s", False
    if work.load_s is not None:
        return work.load_s, "load_s of the scenario", True
    if known is None or work.arrivals == "trace":
        why = "recorded trace" if work.arrivals == "trace" else "model or machine is not in the catalogue"
        return suite.run_timeout_s, f"{why}: at most run_timeout_s", False
    one = request_s(scenario, *known, catalog.pace)
    if work.request_rate_per_s is not None:
        return work.total_count / work.request_rate_per_s + one, f"{work.request_rate_per_s:g} requests/s", True
    waves = math.ceil(work.total_count / work.in_flight)
    rate = work.in_flight * work.osl / one
    return waves * one, f"{work.total_count} requests at {rate:.0f} tok/s", True
