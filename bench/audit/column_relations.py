"""Columns of a table that follow from others in most rows, and the rows in which they do not.

A relation is found in the numbers, not in the names: `c = k a`, `k / a`, `k a b` or `k a / b` with one k for all rows.
It counts only where chance cannot explain it, by the number of relations tried and by how finely numbers are printed.
Of k, too: one that is 1 or the factor of a unit was not fitted to the rows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import comb, exp, log

import numpy as np

from bench.metrics import Floats

HOLDS_MIN = 4  # rows
MISSES_MAX_SHARE = 0.2
APART_MIN = 0.02  # a row that is less apart may be a rounding of a rounding
_APART_LEAST = 0.005  # where all other rows hold so closely that none of them was rounded twice
_CLOSELY = 30  # times the tolerance of the rows that hold
CHANCE_MAX = 1e-3  # coincidences that are expected in one table
_SPREAD_MAX = 0.3  # of the logarithms: columns of one sweep rise and fall together, so chance has less room
_TOLERANCE_MAX = 0.02
_TOLERANCE_MIN = 1e-6
# Of nothing, percents, thousands, millions, minutes and hours, and of a price an hour over tokens a second.
_FACTORS = (1, 1e2, 1e3, 1e6, 60, 3600, 1e6 / 3600)
_OF_UNITS = sorted({sign * log(each) for each in _FACTORS for sign in (1, -1)})
_COLUMNS_MAX, _ROWS_MAX = 16, 400


@dataclass(frozen=True)
class Column:
    """The numbers of one column, NaN where there is none, and half a unit of the last printed digit of each."""

    at: int
    name: str
    values: Floats
    halves: Floats


@dataclass(frozen=True)
class Miss:
    """A number that does not follow from the others of its row, with the line that shows it."""

    row: int
    column: int
    arithmetic: str


@dataclass(frozen=True)
class _Relation:
    target: Column
    factors: tuple[tuple[Column, int], ...]  # with exponent 1 or -1
    log_k: float
    misses: tuple[int, ...]
    chance: float


def misses_of_relations(columns: Sequence[Column]) -> list[Miss]:
    """The rows that break the relations of these columns; of several for one row the surest."""
    usable = [each for each in columns if _varies(each)][:_COLUMNS_MAX]
    rows = len(columns[0].values) if columns else 0
    if rows > _ROWS_MAX or rows <= HOLDS_MIN:
        return []
    found: dict[int, _Relation] = {}
    for target in usable:
        # What explains a number in every row is what it is made of; the others hold by accident where they hold.
        of_target = [each for each in _relations(target, usable) if not _is_explained(each, columns)]
        least = min((len(each.misses) for each in of_target), default=0)
        for relation in (each for each in of_target if len(each.misses) == least):
            for row in relation.misses:
                if row not in found or relation.chance < found[row].chance:
                    found[row] = relation
    return [Miss(row, relation.target.at, _line(relation, row)) for row, relation in sorted(found.items())]


def _varies(column: Column) -> bool:
    positive = column.values[np.isfinite(column.values) & (column.values > 0)]
    return len(positive) > HOLDS_MIN and len(np.unique(positive)) > 1


def _relations(target: Column, columns: Sequence[Column]) -> Iterator[_Relation]:
    """Every relation that gives this column from one or two others."""
    tried = max(1, len(columns) * (len(columns) - 1) * len(columns))
    own = (_log(target), _tolerance(target))
    others = [(each, (_log(each), _as_factor(each))) for each in columns if each is not target]
    for count in (1, 2):
        for group in combinations(others, count):
            for powers in product((1, -1), repeat=count):
                factors = tuple((each, power) for (each, _), power in zip(group, powers, strict=True))
                relation = _held(target, factors, own, [logs for _, logs in group], tried)
                # Of two measurements that agree in all rows, no third number explains one better.
                if relation is not None and (count > 1 or not relation.misses or not _is_same(relation)):
                    yield relation


def _is_same(relation: _Relation) -> bool:
    """Two columns that agree in most rows measure two things: nothing was computed."""
    return relation.factors[0][1] == 1 and abs(relation.log_k) < _TOLERANCE_MIN


def _is_explained(relation: _Relation, columns: Sequence[Column]) -> bool:
    """Whether another column has one number in all rows that hold, and others in those that miss."""
    inside = [relation.target, *(each for each, _ in relation.factors)]
    misses = np.isin(np.arange(len(relation.target.values)), relation.misses)
    holds = np.isfinite(np.array([each.values for each in inside]).sum(axis=0)) & ~misses
    others = [each.values for each in columns if each is not relation.target]
    constant = [values for values in others if misses.any() and len(np.unique(values[holds])) == 1]
    return any(bool((values[misses] != values[holds][0]).all()) for values in constant)


_Logs = tuple[Floats, Floats]


def _held(
    target: Column, factors: tuple[tuple[Column, int], ...], own: _Logs, others: Sequence[_Logs], tried: int
) -> _Relation | None:
    apart = own[0] - sum(power * logs[0] for (_, power), logs in zip(factors, others, strict=True))
    known = np.flatnonzero(np.isfinite(apart))
    if len(known) <= HOLDS_MIN:
        return None
    tolerance = np.asarray(own[1] + sum(logs[1] for logs in others))[known]
    # What was computed is off by rounding at most; what was measured beside it may nearly agree in most rows.
    width = 1.05 * tolerance + _TOLERANCE_MIN
    log_k = _most_agreed(apart[known], width)
    off = np.abs(apart[known] - log_k)
    holds = off <= width
    if holds.sum() < max(HOLDS_MIN, len(known) - max(1, int(MISSES_MAX_SHARE * len(known)))):
        return None
    closely = _CLOSELY * float(tolerance[holds].max())
    misses = off > np.maximum(3 * tolerance, min(APART_MIN, max(_APART_LEAST, closely)))
    if (holds | misses).sum() < len(known):
        return None
    is_varied = len(np.unique(own[0][known][holds])) >= HOLDS_MIN and np.median(tolerance[holds]) <= _TOLERANCE_MAX
    if not is_varied or _is_another_group(apart[known][misses], tolerance[misses]):
        return None
    is_given = any((np.abs(apart[known] - each) <= width)[holds].all() for each in _OF_UNITS)
    chance = _chance(own[0][known], tolerance[holds], (len(known), int(misses.sum())), tried, is_given=is_given)
    if chance > CHANCE_MAX:
        return None
    return _Relation(target, factors, log_k, tuple(int(row) for row in known[misses]), chance)


def _most_agreed(logs: Floats, width: Floats) -> float:
    """The number that lies within the widths of as many rows as any: a median follows the coarsest of them."""
    low, high = np.sort(logs - width), np.sort(logs + width)
    inside = np.arange(1, len(low) + 1) - np.searchsorted(high, low, side="left")
    begin = low[int(inside.argmax())]
    return float(begin + high[np.searchsorted(high, begin, side="left")]) / 2


def _is_another_group(apart: Floats, tolerance: Floats) -> bool:
    """Whether two rows are off alike: they are of another machine or price, not wrong."""
    ordered = np.sort(apart)
    return bool((np.diff(ordered) <= 2 * float(tolerance.max(initial=0.0)) + APART_MIN / 4).any())


def _chance(target: Floats, tolerance: Floats, rows: tuple[int, int], tried: int, *, is_given: bool) -> float:
    """How many relations as good as this one chance makes in this table; `rows` are all, and those that miss.

    One row says nothing where k was fitted to it. A k that is given was one of a few.
    """
    spread = min(_SPREAD_MAX, float(target.std()) or _TOLERANCE_MIN)
    hits = np.log(np.minimum(1.0, 4 * np.maximum(np.sort(tolerance), _TOLERANCE_MIN) / spread))
    fitted = float(hits[1:].sum())
    given = log(len(_OF_UNITS)) + float(hits.sum()) if is_given else fitted
    return exp(log(tried) + log(comb(*rows)) + min(fitted, given))


def _log(column: Column) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(column.values > 0, np.log(column.values), np.nan)


def _tolerance(column: Column) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(column.values > 0, column.halves / np.abs(column.values), np.nan)


def _as_factor(column: Column) -> Floats:
    """Whole numbers of which half a unit would explain anything are counts or prices, and exact."""
    tolerance, known = _tolerance(column), np.isfinite(column.values)
    is_coarse = bool((column.values[known] % 1 == 0).all()) and float(np.nanmedian(tolerance)) > _TOLERANCE_MAX
    return np.where(np.isnan(tolerance), np.nan, 0.0) if is_coarse else tolerance


def _line(relation: _Relation, row: int) -> str:
    """The arithmetic as one can redo it: the numbers of this row, and the factor that all other rows share."""
    expected = exp(relation.log_k)
    words = [f"{expected:.5g}"]
    names = []
    for column, power in relation.factors:
        value = float(column.values[row])
        expected *= value**power
        words.append(f"{'x' if power > 0 else '/'} {value:.6g}")
        names.append(f"{'x' if power > 0 else '/'} {column.name}")
    stated = float(relation.target.values[row])
    formula = " ".join(("k", *names))
    return (
        f"{relation.target.name} is {stated:.6g}, but {' '.join(words)} = {expected:.6g}: in the other rows "
        f"{relation.target.name} = {formula} with one k"
    )
