"""The engines that a search for flags tries: the suite's own, and combinations drawn from its space."""

import random
from itertools import product

from bench.frozen import StoredValue
from bench.suite.engine import Engine
from bench.suite.engine_changes import merge_flags, ordered_flags
from bench.suite.engine_searches import Tune, Value

OWN = "own"  # the suite's flags


class Candidate(StoredValue):
    """One engine: `flags` replace those of the same name; the suite's own has none."""

    name: str
    flags: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Its flags as they are written."""
        return " ".join(self.flags) or "the suite's own flags"


def candidates_of(tune: Tune, engine: Engine, seed: int) -> tuple[Candidate, ...]:
    """The suite's own engine, then the combinations in their order, at most `tune.candidates` together.

    The same seed draws the same ones. A combination that the engine has already is the suite's own.
    """
    own = ordered_flags(engine.flags)
    every = [
        Candidate(name=f"c{place}", flags=flags)
        for place, flags in enumerate(_combinations(tune), start=1)
        if ordered_flags(merge_flags(engine.flags, flags)) != own
    ]
    if len(every) >= tune.candidates:
        places = random.Random(seed).sample(range(len(every)), tune.candidates - 1)  # noqa: S311 - no secret
        every = [every[place] for place in sorted(places)]
    return (Candidate(name=OWN), *every)


def _combinations(tune: Tune) -> list[tuple[str, ...]]:
    chosen = product(*([_words(flag, value) for value in values] for flag, values in tune.flags.items()))
    return [tuple(word for words in one for word in words) for one in chosen]


def _words(flag: str, value: Value) -> tuple[str, ...]:
    if isinstance(value, bool):
        return (flag if value else flag.replace("--", "--no-", 1),)
    return flag, str(value)
