"""Refuse a suite that its engine cannot serve, by what the suite says alone: before anything is built or rented."""

from collections.abc import Iterator

from bench.engines.by_name import ENGINES
from bench.engines.config import parse_flags
from bench.engines.disaggregated import disaggregation_problem, flags_of
from bench.engines.module import EngineModule, WeightsFormat
from bench.errors import SuiteError
from bench.suite.engine import Engine
from bench.suite.model import Model
from bench.suite.source import SuiteSource
from bench.suite.suite import Suite


def require_engines(suite: Suite, source: SuiteSource, inside: tuple[str, ...] = ()) -> None:
    """Raise SuiteError, with file and line, for an unknown engine, install, flag or weights that it cannot use.

    `inside`: the table that the suite's engine stands in, such as `[local]` of a suite that is scaled to this computer.
    """
    tables: list[tuple[tuple[str, ...], Engine, Model]] = [((*inside, "engine"), suite.engine, suite.model)]
    if suite.control is not None:
        tables.append((("control", "engine"), suite.control.engine, suite.control.model))
    for table, engine, model in tables:
        for key, reason in _reasons(engine, model):
            raise SuiteError(f"{source.at((*table, key))}: {'.'.join(table)}.{key}: {reason}")
    where = ": ".join((source.where, *inside))
    for entry in suite.scenarios:  # what a matrix or a variant makes of the engine has no line of its own
        is_own = entry.engine is not None or entry.model is not None
        engine, model = entry.engine or suite.engine, entry.model or suite.model
        for key, reason in _reasons(engine, model) if is_own else ():
            raise SuiteError(f"{where}: scenario {entry.name}: engine.{key}: {reason}")
        if engine.disaggregated is not None and (entry.is_offline or entry.is_embedding or entry.command is not None):
            raise SuiteError(
                f"{where}: scenario {entry.name}: engine.disaggregated: two servers answer completions only"
            )


def _reasons(engine: Engine, model: Model) -> Iterator[tuple[str, str]]:
    """The key of each setting that does not fit, and why."""
    module = ENGINES.get(engine.name)
    if module is None:
        yield "name", f"unknown engine {engine.name!r}: use one of {', '.join(ENGINES)}"
        return
    if engine.install not in module.INSTALLS:
        yield "install", f'{engine.name} runs in a container only: set install = "container" and image'
    for flag in parse_flags(flags_of(engine)).keys() & module.OWN_FLAGS.keys():
        yield "flags", f"{flag} is set by Nightbench: remove it, and use {module.OWN_FLAGS[flag]}"
    problem = disaggregation_problem(engine)
    if problem is not None:
        yield "disaggregated", problem
    reason = _wrong_weights(module, model)
    if reason is not None:
        yield "name", reason


def _wrong_weights(module: EngineModule, model: Model) -> str | None:
    found = weights_of(model.source)
    if found is None or module.WEIGHTS in {None, found}:
        return None
    fitting = ", ".join(one.NAME for one in ENGINES.values() if found == one.WEIGHTS)
    return (
        f"{module.NAME} serves {module.WEIGHTS} weights, and model.source = {model.source} has {found} weights: "
        f"use {fitting}, or another source"
    )


def weights_of(source: str) -> WeightsFormat | None:
    """The format of a source's weights as its name says it; None for a folder, which is checked where it is.

    Repositories of the hub with GGUF files have it in their name.
    """
    kind, _, rest = source.partition(":")
    if kind == "path":
        return "gguf" if rest.endswith(".gguf") else None
    return "gguf" if "gguf" in rest.lower() else "safetensors"
