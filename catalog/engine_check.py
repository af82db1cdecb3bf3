"""Checks a suite against the catalogue before anything is rented: the engine's rules, and the GPUs' memory."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.cost.estimate import HostPlan, fit_of
from bench.engines.rules import BrokenRule
from bench.engines.suite_check import suite_breaks
from bench.errors import SuiteError
from bench.record import PlannedRun
from bench.suite.suite import Suite
from catalog.read import find_gpu, find_model, machine_size, read_catalog, read_engine_rules


def broken_by(suite: Suite, target: str) -> tuple[BrokenRule, ...]:
    """Every engine rule that a suite breaks; none is known for a model or GPU that the catalogue lacks."""
    machine, size = suite.machine, machine_size(target, suite.machine.kind)
    gpu = read_catalog().gpu(size.gpu) if size else find_gpu(machine.gpu or "")
    count = size.gpu_count if size else machine.gpu_count or None
    model, rules = find_model(suite.model.source), read_engine_rules()
    found = (
        broken
        for engine in suite.engines
        for broken in suite_breaks(suite.with_engine(engine), model, gpu, count, rules)
    )
    return tuple({broken.sentence: broken for broken in found}.values())


def refusals(suite: Suite, runs: Sequence[PlannedRun], target: str) -> tuple[str, ...]:
    """Why a night cannot be served, on the machine that the suite names or on an alternative; empty if it can."""
    found = dict.fromkeys(_refusals_on(suite, runs, target))
    for kind, other in _on_alternatives(suite):
        new = [why for why in _refusals_on(other, runs, target) if why not in found]
        found |= dict.fromkeys(f"on {kind}: {why}" for why in new)
    return tuple(found)


def _refusals_on(suite: Suite, runs: Sequence[PlannedRun], target: str) -> Iterator[str]:
    yield from (broken.sentence for broken in broken_by(suite, target) if broken.rule.severity == "FAIL")
    fit = fit_of(suite, runs, HostPlan(0.0, machine_size(target, suite.machine.kind)), read_catalog())
    if fit is not None and not fit.fits:
        yield f"the load does not fit the GPU memory: it needs {fit.needed_gib:.0f} GiB of {fit.room_gib:.0f} GiB"


def _on_alternatives(suite: Suite) -> Iterator[tuple[str, Suite]]:
    for other in suite.machine.alternatives:
        machine = suite.machine.model_copy(update={"kind": other.kind, "gpu": None})
        yield other.kind, suite.model_copy(update={"machine": machine})


def require_servable(
    suite: Suite, runs: Sequence[PlannedRun], target: str, path: Path, *, force: bool
) -> tuple[str, ...]:
    """Raise SuiteError if a night cannot be served; with `force`, return why instead."""
    found = refusals(suite, runs, target)
    if found and not force:
        raise SuiteError(
            f"{path}: the engine would fail: {'; '.join(found)}; nothing was rented: change the suite, or add --force "
            "to run it all the same"
        )
    return found


def doubts_of_engine(suite: Suite, runs: Sequence[PlannedRun], target: str) -> Iterator[str]:
    """A sentence for a plan for each reason to refuse the night, and for each rule that it breaks otherwise."""
    for why in refusals(suite, runs, target):
        yield f"the night would be refused: {why}"
    reported = dict.fromkeys(_warnings(suite, target))
    yield from reported
    for kind, other in _on_alternatives(suite):
        for sentence in _warnings(other, target):
            if sentence not in reported:
                reported[sentence] = None
                yield f"on {kind}: {sentence}"


def _warnings(suite: Suite, target: str) -> Iterator[str]:
    return (broken.sentence for broken in broken_by(suite, target) if broken.rule.severity != "FAIL")
