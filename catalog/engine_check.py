"""Checks a suite against the catalogue before anything is rented: the engine's rules, and the GPUs' memory."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from bench.cost.memory import fits_of
from bench.engines import vllm
from bench.engines.config import parse_flags
from bench.engines.fixes import applied, describe
from bench.engines.rules import BrokenRule
from bench.engines.suite_check import suite_breaks
from bench.errors import SuiteError
from bench.record import PlannedRun
from bench.suite.engine import Engine
from bench.suite.scenario import Scenario
from bench.suite.suite import Suite
from bench.suite.target import parse_target
from catalog.read import find_gpu, find_model, machine_size, read_catalog, read_engine_rules


def broken_by(suite: Suite, target: str) -> tuple[BrokenRule, ...]:
    """Every engine rule that a suite of one machine breaks; none is known for a model or GPU without a row."""
    found = (broken for part in suite.parts() for broken in rules_broken_by(part, target))
    return tuple({broken.sentence: broken for broken in found}.values())


def rules_broken_by(part: Suite, target: str) -> tuple[BrokenRule, ...]:
    """The same for a suite of one machine, one model and one engine."""
    machine, size = part.machine, machine_size(target, part.machine.kind)
    gpu = read_catalog().gpu(size.gpu) if size else find_gpu(machine.gpu or "")
    count = size.gpu_count if size else machine.gpu_count or None
    return suite_breaks(part, find_model(part.model.source), gpu, count, read_engine_rules())


def with_rules_applied(suite: Suite, target: str) -> tuple[Suite, tuple[str, ...]]:
    """The suite with the fix of each rule that it breaks and that names one, and what was changed.

    Its scenarios get other ids then. Scenarios that become equal are merged.
    """
    changed: list[tuple[Suite, Engine]] = []
    said: list[str] = []
    for part in suite.parts():
        engine, changes = _mended(part, target)
        changed.append((part, engine))
        on = f" on {part.machine.name}" if len(suite.machines) > 1 else ""
        said += [f"{part.model.name}{on}: {change}" for change in changes]
    if not said:
        return suite, ()
    return _with_engines(suite, changed).without_equals(), tuple(dict.fromkeys(said))


def _mended(part: Suite, target: str) -> tuple[Engine, list[str]]:
    """The engine of one configuration with the fixes of its broken rules; a rule is applied once."""
    engine, said, seen = part.engine, list[str](), set[str]()
    while True:
        broken = rules_broken_by(part.model_copy(update={"engine": engine}), target)
        one = next((each for each in broken if each.steps and each.rule.rule not in seen), None)
        if one is None:
            return engine, said
        seen.add(one.rule.rule)
        for step in one.steps:
            said.append(f"{describe(engine, step)} ({one.rule.rule})")
            engine = applied(engine, step)


def _with_engines(suite: Suite, changed: Sequence[tuple[Suite, Engine]]) -> Suite:
    """The suite with a new engine for the scenarios of each of its parts."""
    new = {entry.name: engine for part, engine in changed for entry in part.scenarios}
    entries = tuple(
        entry
        if new[entry.name] == (entry.engine or suite.engine)
        else entry.model_copy(update={"engine": new[entry.name]})
        for entry in suite.scenarios
    )
    return suite.model_copy(update={"scenarios": entries})


def refusals(suite: Suite, runs: Sequence[PlannedRun], target: str) -> tuple[str, ...]:
    """Why a night cannot be served, on the machines that the suite names or on an alternative; empty if it can."""
    return _each_once(suite, lambda one: _refusals_on(one, runs, target))


def _refusals_on(suite: Suite, runs: Sequence[PlannedRun], target: str) -> Iterator[str]:
    yield from (broken.sentence for broken in broken_by(suite, target) if broken.rule.severity == "FAIL")
    fits = fits_of(suite, runs, machine_size(target, suite.machine.kind), read_catalog())
    for model, fit in fits.items():
        load = f"the load of {model}" if len(suite.models) > 1 else "the load"
        if not fit.fits:
            yield f"{load} does not fit the GPU memory: it needs {fit.needed_gib:.0f} GiB of {fit.room_gib:.0f} GiB"


def _each_once(suite: Suite, on_one: Callable[[Suite], Iterator[str]]) -> tuple[str, ...]:
    """What holds on each machine and, where that adds something, on its alternatives; several machines are named."""
    several, found = len(suite.machines) > 1, list[str]()
    for machine in suite.machines:
        own = suite.with_machine(machine)
        said = dict.fromkeys(on_one(own))
        found += [f"on {machine.name}: {why}" if several else why for why in said]
        for other in machine.alternatives:
            new = [why for why in on_one(_on(own, other.kind)) if why not in said]
            said |= dict.fromkeys(new)
            found += [f"on {other.kind}: {why}" for why in new]
    return tuple(found)


def _on(suite: Suite, kind: str) -> Suite:
    return suite.model_copy(update={"machine": suite.machine.model_copy(update={"kind": kind, "gpu": None})})


def require_servable(
    suite: Suite, runs: Sequence[PlannedRun], target: str, path: Path, *, force: bool
) -> tuple[str, ...]:
    """Raise SuiteError if a night cannot be served; with `force`, return why instead."""
    found = refusals(suite, runs, target)
    if found and not force:
        fixes = "--apply-rules to apply the fixes named, or " if any("--apply-rules" in why for why in found) else ""
        raise SuiteError(
            f"{path}: the engine would fail: {'; '.join(found)}; nothing was rented: change the suite, or add {fixes}"
            "--force to run it all the same"
        )
    return found


def doubts_of_engine(suite: Suite, runs: Sequence[PlannedRun], target: str) -> Iterator[str]:
    """A sentence for a plan for each reason to refuse the night, and for each rule that it breaks otherwise."""
    for why in refusals(suite, runs, target):
        yield f"the night would be refused: {why}"
    yield from _each_once(suite, lambda one: _warnings(one, target))
    yield from dict.fromkeys(doubt for run in runs if (doubt := _doubt_of_prefix(run.scenario, target)))


def _doubt_of_prefix(scenario: Scenario, target: str) -> str | None:
    """What of a shared prefix vLLM's cache cannot have, as it keeps whole blocks; None where it can have all of it."""
    prefix, flags = scenario.workload.prompts.prefix_tokens, parse_flags(scenario.engine.flags)
    if prefix is None or scenario.engine.name != vllm.NAME or "--no-enable-prefix-caching" in flags:
        return None
    block = vllm.block_tokens(flags, has_gpu=not parse_target(target).is_here)
    if prefix % block == 0:
        return None
    return (
        f"{scenario.name}: prefix_tokens = {prefix} is not a multiple of the engine's blocks of {block} tokens, so "
        f"that its prefix cache has {prefix - prefix % block} of them at most; take a multiple of {block}, or set "
        "--block-size"
    )


def _warnings(suite: Suite, target: str) -> Iterator[str]:
    return (broken.sentence for broken in broken_by(suite, target) if broken.rule.severity != "FAIL")
