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
    """Every engine rule that a suite breaks; none is known for a model or GPU that the catalogue lacks."""
    machine, catalog = suite.machine, read_catalog()
    size = catalog.size(target, machine.kind) or catalog.size(target, hardware_of(machine.kind))
    gpu = catalog.gpu(size.gpu) if size else find_gpu(machine.gpu or "")
    count = size.gpu_count if size else machine.gpu_count or None
    return suite_breaks(suite, find_model(suite.model.source), gpu, count, read_engine_rules())


def require_engine_rules(suite: Suite, target: str, path: Path) -> None:
    """Raise SuiteError if the engine would not start, or would not serve what the suite requests."""
    found = [broken.sentence for broken in broken_by(suite, target) if broken.rule.severity == "FAIL"]
    if found:
        raise SuiteError(f"{path}: the engine would fail: {'; '.join(found)}")


def doubts_of_engine(suite: Suite, target: str) -> Iterator[str]:
    """A sentence per broken rule, for a plan: those a night is refused for, and those only an alternative breaks."""
    planned = broken_by(suite, target)
    for broken in planned:
        yield f"the night would be refused: {broken.sentence}" if broken.rule.severity == "FAIL" else broken.sentence
    reported = {broken.sentence for broken in planned}
    for other in suite.machine.alternatives:
        machine = suite.machine.model_copy(update={"kind": other.kind, "gpu": None})
        for broken in broken_by(suite.model_copy(update={"machine": machine}), target):
            if broken.sentence not in reported:
                reported.add(broken.sentence)
                yield f"on {other.kind}: {broken.sentence}"
