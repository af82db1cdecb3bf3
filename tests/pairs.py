"""Fewer cases of a large matrix: some in `make test`, every pair of values in `make test-all`, all in `make soak`."""

import itertools
import os
from collections.abc import Iterable
from typing import Any

import pytest

IS_SOAK = os.environ.get("SOAK") == "1"

Pair = tuple[int, Any, int, Any]


def every_pair(*factors: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Cases in which each value of each factor meets each value of every other; the same ones every time.

    Most faults need one value or two, which is what makes this enough between two soaks.
    """
    cases = list(itertools.product(*map(tuple, factors)))
    return cases if IS_SOAK else _fewest(cases)


def matrix(cases: Iterable[Any], kept: int) -> list[Any]:
    """Mark every case after the first `kept` ones, so that it runs in `make test-all` and not in `make test`."""
    return [case if at < kept else _marked(case) for at, case in enumerate(cases)]


def thin_matrix(cases: Iterable[Any], each: int) -> list[Any]:
    """Mark all cases but the first, and each `each`-th one after it, in the same way."""
    return [_marked(case) if at % each else case for at, case in enumerate(cases)]


def _marked(case: Any) -> Any:
    return pytest.param(*case if isinstance(case, tuple) else (case,), marks=pytest.mark.matrix)


def a_sample(cases: Iterable[Any], count: int) -> list[Any]:
    """The first `count` cases, and all of them in a soak."""
    return list(cases) if IS_SOAK else list(itertools.islice(cases, count))


def _fewest(cases: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Take the case that has most pairs not seen yet, until every pair was seen."""
    unseen = {pair for case in cases for pair in _pairs_of(case)}
    taken = []
    while unseen:
        best = max(cases, key=lambda case: len(unseen & _pairs_of(case)))
        unseen -= _pairs_of(best)
        taken.append(best)
    return sorted(taken, key=cases.index)


def _pairs_of(case: tuple[Any, ...]) -> set[Pair]:
    return {(i, case[i], j, case[j]) for i, j in itertools.combinations(range(len(case)), 2)}
