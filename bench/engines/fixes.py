"""The fix that an engine rule names, applied to an engine: a flag or a variable that is set or removed.

A fix is a list of steps, divided by semicolons: `--block-size 1`, `NAME=value`, `remove NAME` or `remove --flag`. The
name of what is removed may end with `*`. `heads/16` is the number of the model's attention heads, divided.
"""

import re
from collections.abc import Mapping
from fnmatch import fnmatch

from bench.engines.config import EngineConfig, flag_groups, parse_flags
from bench.suite.engine import Engine

_HEADS = re.compile(r"heads/(\d+)")
REMOVE = "remove "


def steps_of(fix: str | None, config: EngineConfig) -> tuple[str, ...]:
    """The steps of a rule's fix for this configuration; none where one of them depends on what is not known."""
    found = [_HEADS.sub(lambda match: _divided(config, int(match[1])), step.strip()) for step in (fix or "").split(";")]
    return () if fix is None or any("?" in step for step in found) else tuple(found)


def _divided(config: EngineConfig, by: int) -> str:
    heads = config.model.n_heads if config.model else 0
    return "?" if not heads or heads % by else str(heads // by)


def applied(engine: Engine, step: str) -> Engine:
    """The engine after one step of a fix."""
    if step.startswith(REMOVE):
        return _without(engine, step.removeprefix(REMOVE))
    flag, _, value = step.partition(" ")
    if flag.startswith("-"):
        kept = _without(engine, flag)
        return kept.model_copy(update={"flags": (*kept.flags, *filter(None, (flag, value)))})
    name, _, value = step.partition("=")
    return engine.model_copy(update={"environment": engine.environment | {name: value}})


def describe(engine: Engine, step: str) -> str:
    """What a step changes of this engine: `--block-size 16 becomes --block-size 1`."""
    if step.startswith(REMOVE):
        pattern = step.removeprefix(REMOVE)
        names = [name for name in (*parse_flags(engine.flags), *engine.environment) if fnmatch(name, pattern)]
        return f"{', '.join(names)} is removed"
    flag = step.partition(" ")[0]
    is_flag = flag.startswith("-")
    name = flag if is_flag else step.partition("=")[0]
    old: Mapping[str, str] = parse_flags(engine.flags) if is_flag else engine.environment
    return f"{name}{' ' if is_flag else '='}{old[name]} becomes {step}" if name in old else f"{step} is added"


def _without(engine: Engine, pattern: str) -> Engine:
    kept = [words for words in flag_groups(engine.flags) if not fnmatch(next(iter(parse_flags(words))), pattern)]
    flags = tuple(word for words in kept for word in words)
    environment = {name: value for name, value in engine.environment.items() if not fnmatch(name, pattern)}
    return engine.model_copy(update={"flags": flags, "environment": environment})
