"""What a scenario, a matrix or a variant changes of its suite's engine."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Literal

from pydantic import Field

from bench.frozen import Frozen
from bench.suite.engine import IMAGE, TAG, Disaggregated, Engine
from bench.suite.machine import LABEL


class EngineChanges(Frozen):
    """The keys of an engine that differ from the suite's; every other key stays as `[engine]` has it.

    `flags` replace the engine's own flags of the same name, and the others are appended. `environment` and
    `secret_environment` are added. An `image` makes the engine a container and ends `track`.
    """

    version: str | None = None  # in place of the engine's
    max_model_len: int | None = Field(default=None, ge=1)  # in place of the engine's
    # Added to the engine's; one with the same name replaces it.
    flags: tuple[str, ...] = Field(default=(), strict=False)
    environment: dict[str, str] = Field(default_factory=dict)  # added to the engine's
    secret_environment: tuple[str, ...] = Field(default=(), strict=False)  # added to the engine's
    install: Literal["venv", "container"] | None = None  # in place of the engine's
    image: str | None = Field(default=None, pattern=IMAGE)  # in place of the engine's
    track: str | None = Field(default=None, pattern=TAG)  # in place of the engine's
    disaggregated: Disaggregated | None = None  # prefill and decode on servers of their own; in place of the engine's

    def of(self, engine: Engine) -> dict[str, Any]:
        """The engine's keys with these changes, not yet checked."""
        found = engine.model_dump(exclude_defaults=True)
        if self.image is not None:
            found = {key: value for key, value in found.items() if key != "track"} | {"install": "container"}
        names = ("version", "max_model_len", "install", "image", "track", "disaggregated")
        given = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        added = {
            "flags": merge_flags(engine.flags, self.flags),
            "environment": engine.environment | self.environment,
            "secret_environment": tuple(dict.fromkeys((*engine.secret_environment, *self.secret_environment))),
        }
        return found | given | added


class EngineTable(EngineChanges):
    """The `engine` of a scenario, a matrix, a model or a machine: it may also name another engine.

    Then nothing but the length of the context stays: `[engine]` has the flags, variables and image of another program.
    """

    name: str | None = None  # another engine, such as `llama.cpp`

    def of(self, engine: Engine) -> dict[str, Any]:
        """The engine's keys with these changes, not yet checked."""
        if self.name in (None, engine.name):
            return super().of(engine)
        found = super().of(Engine(name=str(self.name), version="", max_model_len=engine.max_model_len))
        return {key: value for key, value in found.items() if (key, value) != ("version", "")}


class Variant(EngineChanges):
    """One `[[variants]]` table: a name, and what it changes; without changes it is the engine as `[engine]` has it."""

    name: str = Field(pattern=LABEL)  # unique; scenarios choose by it


def merge_flags(flags: Sequence[str], changes: Sequence[str]) -> tuple[str, ...]:
    """The flags with each of `changes` in place of the flag of its name; `--no-x` has the name of `--x`."""
    changed = {name for name, _words in _groups(changes)}
    kept = (word for name, words in _groups(flags) if name not in changed for word in words)
    return (*kept, *changes)


def added_flags(flags: Sequence[str], base: Sequence[str]) -> tuple[str, ...]:
    """The flags that `base` does not have, or has with another value."""
    known = {words for _name, words in _groups(base)}
    return tuple(word for _name, words in _groups(flags) if words not in known for word in words)


def without_flags(flags: Sequence[str], names: Collection[str]) -> tuple[str, ...]:
    """The flags without those of these names."""
    return tuple(word for name, words in _groups(flags) if name not in names for word in words)


def ordered_flags(flags: Sequence[str]) -> tuple[str, ...]:
    """The flags with their values, sorted: equal for engines whose flags differ in their order only."""
    return tuple(word for group in sorted(words for _name, words in _groups(flags)) for word in group)


def flag_names(flags: Sequence[str]) -> tuple[str, ...]:
    """The names of the flags, as they are written."""
    return tuple(words[0].partition("=")[0] for _name, words in _groups(flags) if words[0].startswith("-"))


def _groups(words: Sequence[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each flag's name, and its words: the flag and its values."""
    group: list[str] = []
    for word in words:
        if word.startswith("-") and not word.lstrip("-")[:1].isdigit() and group:
            yield _name(group[0]), tuple(group)
            group = []
        group.append(word)
    if group:
        yield _name(group[0]), tuple(group)


def _name(flag: str) -> str:
    return flag.partition("=")[0].replace("_", "-").replace("--no-", "--", 1)
