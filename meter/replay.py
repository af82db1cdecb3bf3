"""Prompts of a recorded trace, made of named parts: parts of the same name have the same tokens."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from meter.rules import Rule

Symbols = tuple[int, ...]  # places in the vocabulary
_OF_TURNS = ("session", "turn", "pause_s")
Part = tuple[int, int]  # its name, and how many tokens of its content


def _is_request(found: Any) -> bool:
    if not isinstance(found, dict) or not set(found) <= {"output_tokens", "parts", *_OF_TURNS}:
        return False
    parts, turn = found.get("parts") or (), [found.get(name, 0) for name in _OF_TURNS]
    is_turn = all(isinstance(value, (int, float)) and value >= 0 for value in turn)
    return is_turn and _is_count(found.get("output_tokens")) and bool(parts) and all(map(_is_part, parts))


def _is_part(found: Any) -> bool:
    return isinstance(found, list) and len(found) == 2 and type(found[0]) is int and _is_count(found[1])  # noqa: PLR2004


def _is_count(found: Any) -> bool:
    return type(found) is int and found > 0


REQUESTS = Rule(
    (list,),
    lambda found: all(map(_is_request, found)),
    "a list of objects with output_tokens and parts, a list of [name, tokens] with whole numbers, "
    "and session, turn and pause_s of a turn",
)


@dataclass(slots=True)
class Contents:
    """The tokens of each part: the same for the same seed and name, the shorter one a beginning of the longer."""

    seed: int
    symbols: int
    _made: dict[int, Symbols] = field(default_factory=dict)

    def of(self, parts: list[Part]) -> Symbols:
        """The tokens of these parts, one after another."""
        return tuple(symbol for name, size in parts for symbol in self._part(name, size)[:size])

    def _part(self, name: int, size: int) -> Symbols:
        made = self._made.get(name, ())
        if len(made) < size:
            # random() is the one method whose sequence Python promises to keep between versions.
            draw = random.Random(f"part {self.seed} {name}").random  # noqa: S311 -- load, not secrets
            made = self._made[name] = tuple(int(draw() * self.symbols) for _ in range(size))
        return made


@dataclass(slots=True)
class PrefixTree:
    """The beginnings of all prompts so far, as paths of parts; it says how much of a next one came before."""

    _nodes: dict[tuple[int, int, int], int] = field(default_factory=dict)  # (node, name, size) to the node after it
    _longest: dict[tuple[int, int], int] = field(default_factory=dict)  # (node, name) to the most tokens that came

    def add(self, parts: list[Part]) -> int:
        """Add a prompt, and return how many of its first tokens an earlier prompt had."""
        node = shared = 0
        for name, size in parts:
            longest = self._longest.get((node, name), 0)
            shared += min(longest, size)  # 0 behind a part that is new, since its node is
            self._longest[node, name] = max(longest, size)
            node = self._nodes.setdefault((node, name, size), len(self._nodes) + 1)
        return shared


@dataclass(frozen=True, slots=True)
class ReplayedPrompt:
    """One prompt of a trace."""

    symbols: Symbols
    output_tokens: int
    shared_tokens: int  # with an earlier prompt, from the beginning on
    session: int | None
    turn: int | None
    pause_s: float  # after the answer before it


def replayed_prompts(requests: Sequence[dict[str, Any]], seed: int, symbols: int) -> Iterator[ReplayedPrompt]:
    """Yield the prompts of these requests of a plan, drawn from so many symbols."""
    contents, tree = Contents(seed, symbols), PrefixTree()
    for request in requests:
        parts = [(name, size) for name, size in request["parts"]]
        turn = request.get("session"), request.get("turn"), request.get("pause_s", 0.0)
        yield ReplayedPrompt(contents.of(parts), request["output_tokens"], tree.add(parts), *turn)
