"""Which runs a night adds where memory ran out: the same scenarios on the next rung of their ladder."""

from collections.abc import Mapping, Sequence

from bench.engines.by_name import ENGINES, retry_of
from bench.engines.config import flag_groups, parse_flags
from bench.errors import SuiteError
from bench.record import NightRecord, PlannedRun
from bench.suite.engine import Engine
from bench.suite.ladder import Rung
from bench.suite.scenario import Scenario
from bench.suite.suite import Suite


def ladder_of(suite: Suite) -> tuple[Rung, ...]:
    """The suite's rungs; on GPUs those of its engine where the suite declares none. `ladder = []` means none."""
    if suite.ladder is not None:
        return suite.ladder
    is_on_cpu = suite.machine.is_here and not suite.machine.gpu_count
    return () if is_on_cpu else ENGINES[suite.engine.name].LADDER


def on_rung(engine: Engine, rung: Rung) -> Engine:
    """The engine with a rung's settings in place of its own."""
    flags = ENGINES[engine.name].RUNG_FLAGS
    values = {flags[name]: str(value) for name, value in rung.settings.items() if name in flags}
    kept = _without(engine.flags, values)
    added = tuple(word for pair in values.items() for word in pair)
    return engine.model_copy(
        update={"flags": (*kept, *added), "max_model_len": rung.max_model_len or engine.max_model_len}
    )


def _without(words: Sequence[str], names: Mapping[str, str]) -> tuple[str, ...]:
    """The words of a command without these flags and their values."""
    return tuple(word for group in flag_groups(words) if next(iter(parse_flags(group))) not in names for word in group)


def require_rungs(suite: Suite, where: str) -> None:
    """Raise SuiteError if a rung that the suite declares leaves the engine as the suite asks for it."""
    for number, rung in enumerate(suite.ladder or (), start=1):
        if all(_settings(on_rung(engine, rung)) == _settings(engine) for engine in suite.engines):
            raise SuiteError(
                f"{where}: rung {number} of the ladder changes nothing: the engine already has {rung}; "
                "change the rung, or remove it"
            )


def _settings(engine: Engine) -> tuple[int, dict[str, str]]:
    return engine.max_model_len, parse_flags(engine.flags)


def climbs(engine: str, failure: str | None) -> bool:
    """Whether a failure of this class, by its name, may be cured by a smaller configuration."""
    return retry_of(engine, failure) == "ladder"


def fallback_run(night: NightRecord, run: PlannedRun) -> PlannedRun | None:
    """The same scenario and repeat on the next rung, for a run that ran out of memory; None after the last rung."""
    scenario, ladder = run.scenario, ladder_of(night.suite)
    for rung in range(scenario.rung + 1, len(ladder) + 1):
        engine = on_rung(night.suite.engine_of(scenario.name), ladder[rung - 1])
        # A rung of the engine's own ladder may be what the suite asks for anyway, or too short for this scenario.
        if _settings(engine) != _settings(scenario.engine) and _fits(scenario, engine):
            asked = scenario.fallback_of or scenario.scenario_id
            smaller = scenario.model_copy(update={"engine": engine, "fallback_of": asked, "rung": rung})
            return run.model_copy(update={"scenario": smaller, "order": run.order + len(night.runs)})
    return None


def _fits(scenario: Scenario, engine: Engine) -> bool:
    return scenario.workload.context_tokens <= engine.max_model_len
