"""The searches over engines that a suite asks for: for what made a confirmed change, and for the fastest flags."""

import math
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from bench.frozen import Frozen

COMBINATIONS_MAX = 1000  # as many as a suite has scenarios at most
Value = bool | int | float | str
Tuned = Literal[
    "output_throughput_tok_per_s",
    "ttft_p50_ms",
    "ttft_p99_ms",
    "tpot_p50_ms",
    "tpot_p99_ms",
    "e2el_p50_ms",
    "usd_per_mtok_output",
]


class Bisect(Frozen):
    """What the nights of a search may cost together; each runs only the scenario that moved."""

    usd: float = Field(gt=0)  # for each event; a machine without a price costs nothing


class Tune(Frozen):
    """Which flags of the engine to try, and what the search may take; only `nightbench tune` reads it.

    The suite's own flags are one of the candidates, and what the best one is confirmed against.
    """

    scenario: str | None = None  # whose load is measured; None: the only one of the suite
    metric: Tuned = "output_throughput_tok_per_s"  # what is best, among the engines that keep the suite's [slo]
    # By flag the values to try: a number or a text, or true for the flag alone and false for its --no- form.
    flags: dict[str, Annotated[tuple[Value, ...], Field(strict=False)]]
    candidates: int = Field(default=16, ge=2, le=100)  # engines of the first round; of more, some are drawn by `seed`
    # One in so many goes on to the next round, whose runs send so many times as many requests.
    keep: int = Field(default=2, ge=2)
    # Of each run in the first round; None: the scenario's, divided by `keep` for each round.
    request_count: int | None = Field(default=None, ge=1)
    rounds: Annotated[int, Field(ge=2, le=25)] = 4  # of A B B A, in which the best is confirmed at full length
    requests_max: int | None = Field(default=None, ge=1)  # of all nights together; None: no limit
    minutes_max: float | None = Field(default=None, gt=0)  # of all leases together; None: no limit
    usd_max: float | None = Field(default=None, gt=0)  # of all leases together; None: no limit

    @model_validator(mode="after")
    def _is_a_space(self) -> Self:
        if not self.flags:
            msg = 'the space of flags is empty: give flags = { "--max-num-seqs" = [64, 256] }'
            raise ValueError(msg)
        for flag, values in self.flags.items():
            _require_values(flag, values)
        if self.combinations > COMBINATIONS_MAX:
            sizes = " x ".join(str(len(values)) for values in self.flags.values())
            msg = (
                f"the space has {self.combinations:,} combinations ({sizes}), and a search has at most "
                f"{COMBINATIONS_MAX:,}: list fewer values, or fewer flags"
            )
            raise ValueError(msg)
        return self

    @property
    def combinations(self) -> int:
        """How many sets of flags the space has."""
        return math.prod(map(len, self.flags.values()))


def _require_values(flag: str, values: tuple[Value, ...]) -> None:
    if not flag.startswith("--") or "=" in flag or any(letter.isspace() for letter in flag):
        msg = f"{flag!r} is not a flag: write its long form alone, such as --max-num-seqs"
        raise ValueError(msg)
    if not values:
        msg = f"{flag} has no values: list at least one, or remove it"
        raise ValueError(msg)
    twice = [value for place, value in enumerate(values) if repr(value) in map(repr, values[:place])]
    if twice:
        msg = f"{flag} lists {twice[0]!r} twice: remove one"
        raise ValueError(msg)
