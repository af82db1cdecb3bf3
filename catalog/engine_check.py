"""Checks a suite against the catalogue's engine rules before anything is rented."""

from collections.abc import Iterator
from pathlib import Path

from bench.engines.rules import BrokenRule
from bench.engines.suite_check import suite_breaks
from bench.errors import SuiteError
from bench.suite.machine import hardware_of
from bench.suite.suite import Suite
from catalog.read import find_gpu, find_model, read_catalog, read_engine_rules


def broken_by(suite: Suite, target: str) -> tuple[BrokenRule, ...]:
    """Every rule of its engine that a suite breaks; of a model or GPU that is not in the catalogue, none is known."""
    machine, catalog = suite.machine, read_catalog()
    size = catalog.size(target, machine.kind) or catalog.size(target, hardware_of(machine.kind))
    gpu = catalog.gpu(size.gpu) if size else find_gpu(machine.gpu or "")
    count = size.gpu_count if size else machine.gpu_count or None
    return suite_breaks(suite, find_model(suite.model.source), gpu, count, read_engine_rules())


def require_engine_rules(suite: Suite, target: str, path: Path) -> None:
    """Raise SuiteError where the engine would not start, or serve something else than is asked for."""
    found = [broken.sentence for broken in broken_by(suite, target) if broken.rule.severity == "FAIL"]
    if found:
        raise SuiteError(f"{path}: the engine would fail: {'; '.join(found)}")


def doubts_of_engine(suite: Suite, target: str) -> Iterator[str]:
    """Each broken rule in words, for a plan: those that a night is refused for, and what only an alternative breaks."""
    ours = broken_by(suite, target)
    for broken in ours:
        yield f"the night would be refused: {broken.sentence}" if broken.rule.severity == "FAIL" else broken.sentence
    told = {broken.sentence for broken in ours}
    for other in suite.machine.alternatives:
        machine = suite.machine.model_copy(update={"kind": other.kind, "gpu": None})
        for broken in broken_by(suite.model_copy(update={"machine": machine}), target):
            if broken.sentence not in told:
                told.add(broken.sentence)
                yield f"on {other.kind}: {broken.sentence}"
