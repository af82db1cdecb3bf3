"""Ratios that a table states, against the numbers that they are made of: two of a row, or one of a row and its base.

A ratio is known by its name (`Speedup`, `vs baseline`), in the header or, of a comparison, in the first cell of its
row; what its numbers measure need not be known. It is computed in each way that gives most of its column.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Literal

import numpy as np

from bench.audit.column_relations import APART_MIN, Column, Miss
from warehouse.importers.claims_table.vocabulary import column_of, metric_of
from warehouse.importers.parsing.printed_units import split_name
from warehouse.importers.tables.table import Table

RATIO = re.compile(
    r"speed[- _]?ups?|(?:\b|_)(?:vs|versus|ratios?|improvements?|faster|slower|gains?|uplift|delta|changes?"
    r"|differences?|diff|scaling|relative|efficiency)(?:\b|_)|Δ|δ",  # `Duration` has no ratio
    re.IGNORECASE,
)
_ROWS_MIN, _MATCHED_MIN = 3, 2
_NUMBERS_MAX = 200  # columns times rows beyond which pairs of columns are not tried
_PERCENT = 100.0
_PAIR = 2
_WORD = re.compile(r"[a-z0-9]+")


@dataclass(frozen=True)
class _Form:
    """How a ratio is made: of two columns, or of one and its own number in the base's row.

    `either`: of two columns, whichever is the larger or the smaller, as the rows are of several metrics. `down` has
    the first row as base, `above` the nearest row above that states no change. `second` is a column, or for one column
    1 for the row's number over the base's and -1 for the reverse. `is_share`: 1.13, and not 0.13 more.
    """

    kind: Literal["across", "either", "less", "down", "above"]
    first: int
    second: int
    is_share: bool


@dataclass(frozen=True)
class _Ratio:
    """A column of ratios with the other numbers of its table, and the rows in which it has a number."""

    column: Column
    others: Mapping[int, Column]
    rows: tuple[int, ...]
    is_percent: bool

    def bases(self, form: _Form) -> list[int]:
        """The rows that state no change, or nothing, beside a number."""
        same = (_PERCENT if self.is_percent else 1.0) if form.is_share else 0.0
        stated, own = self.column.values, self.others[form.first].values
        return [int(at) for at in np.flatnonzero(np.isfinite(own) & ((stated == same) | ~np.isfinite(stated)))]

    def operands(self, form: _Form, row: int) -> tuple[tuple[float, float], tuple[float, float]] | None:
        """The two numbers, each with half a unit of its last digit; None where one is missing."""
        first = self.others[form.first]
        if form.kind in {"down", "above"}:
            bases = self.bases(form) if form.kind == "above" else [self.rows[0]]
            base = max((each for each in bases if each <= row), default=min(bases, default=None))
            places = None if base is None else ((first, row), (first, base))
            places = places if places is None or form.second == 1 else (places[1], places[0])
        else:
            places = ((first, row), (self.others[form.second], row))
        if places is None:
            return None
        over, under = ((float(each.values[at]), float(each.halves[at])) for each, at in places)
        return (over, under) if np.isfinite(over[0]) and np.isfinite(under[0]) and over[0] and under[0] else None

    def expected(self, form: _Form, row: int) -> tuple[float, float] | None:
        """What the form gives, and how far rounding may move it."""
        found = self.operands(form, row)
        if found is None:
            return None
        (over, over_half), (under, under_half) = found
        share = over / under
        if form.kind == "either":
            share = min((share, 1 / share), key=lambda each: abs(self._shown(form, each) - self.column.values[row]))
        loose = abs(share) * (over_half / abs(over) + under_half / abs(under))
        return self._shown(form, share), loose * (_PERCENT if self.is_percent else 1.0)

    def _shown(self, form: _Form, share: float) -> float:
        shown = 1 - share if form.kind == "less" else share if form.is_share else share - 1
        return shown * _PERCENT if self.is_percent else shown

    def is_near(self, form: _Form, row: int, more: float = 0.0) -> bool:
        """Whether the form gives the stated number, to what is printed."""
        found = self.expected(form, row)
        if found is None:
            return False
        (expected, loose), stated = found, float(self.column.values[row])
        near = 1.05 * float(self.column.halves[row]) + loose + 0.005 * abs(expected)
        return abs(expected - stated) <= near + more * max(abs(expected), abs(stated))


def misses_of_ratios(table: Table, columns: Sequence[Column]) -> Iterator[Miss]:
    """The numbers of columns that are named as ratios which the others do not give, where they give the rest."""
    named = [each for each in columns if RATIO.search(each.name)]
    rest = {each.at: each for each in columns if not RATIO.search(each.name)}
    has_pairs = len(columns) * len(table.rows) <= _NUMBERS_MAX
    is_of_metrics = bool(table.rows) and all(metric_of(row.cells[0]) is not None for row in table.rows)
    for column in named:
        rows = tuple(int(row) for row in np.flatnonzero(np.isfinite(column.values)))
        is_percent = "%" in column.name or any("%" in row.cells[column.at] for row in table.rows)
        if rows and rest:
            ratio = _Ratio(column, rest, rows, is_percent)
            yield from _misses(ratio, list(_forms(ratio, has_pairs=has_pairs, is_of_metrics=is_of_metrics)))


def states_ratio(table: Table) -> bool:
    """Whether a column is named as a ratio and has numbers, beside another with numbers that are not a setting."""
    numeric = [
        name
        for at, name in enumerate(table.header[1:], start=1)
        if any(letter.isdigit() for row in table.rows for letter in row.cells[at]) and not column_of(name)
    ]
    named = [name for name in numeric if RATIO.search(name)]
    return bool(named) and len(named) < len(numeric)


def _forms(ratio: _Ratio, *, has_pairs: bool, is_of_metrics: bool) -> Iterator[_Form]:
    """Percents are of one kind down a column: 13 % more, or 113 % of it."""
    pairs = list(permutations(ratio.others, 2)) if has_pairs else []
    for is_share in (False, True) if ratio.is_percent else (True,):
        for one, other in pairs:
            yield _Form("either" if is_of_metrics else "across", one, other, is_share)
        for at in ratio.others:
            for power in (1, -1):
                yield _Form("down", at, power, is_share)
                yield _Form("above", at, power, is_share)
    yield from (_Form("less", one, other, is_share=False) for one, other in pairs)


def _misses(ratio: _Ratio, forms: Sequence[_Form]) -> Iterator[Miss]:
    off = {form: [row for row in ratio.rows if not ratio.is_near(form, row)] for form in forms}
    form = _fitting(ratio, off) or _named(ratio, off) or _only(ratio, off)
    for row in off[form] if form else ():
        if form and ratio.expected(form, row) and not ratio.is_near(form, row, APART_MIN):
            yield Miss(row, ratio.column.at, _line(ratio, row, form))


_Off = Mapping[_Form, Sequence[int]]


def _fitting(ratio: _Ratio, off: _Off) -> _Form | None:
    """The form that gives most rows: two of them at least, and all but one or a quarter."""
    most = max(1, len(ratio.rows) // 4)
    good = [form for form, rows in off.items() if len(rows) <= most and _told(ratio, form, rows) >= _MATCHED_MIN]
    return _nearest(ratio, off, good)


def _nearest(ratio: _Ratio, off: _Off, forms: Sequence[_Form]) -> _Form | None:
    """The one of these that gives most rows; of several the one that is least off."""

    def apart(form: _Form) -> float:
        found = [(row, ratio.expected(form, row)) for row in ratio.rows]
        return sum(abs(each[0] - float(ratio.column.values[row])) for row, each in found if each)

    return min(forms, key=lambda form: (len(off[form]), apart(form)), default=None)


def _told(ratio: _Ratio, form: _Form, off: Sequence[int]) -> int:
    """How many rows fit that state a change; any form gives those that state none."""
    same = (_PERCENT if ratio.is_percent else 1.0) if form.is_share else 0.0
    return sum(row not in off and abs(float(ratio.column.values[row]) - same) > APART_MIN for row in ratio.rows)


def _named(ratio: _Ratio, off: _Off) -> _Form | None:
    """The form that the ratio's own name tells, in a table of few rows: `vLLM over HF`, `Wall vs reference`."""
    words = set(_WORD.findall(ratio.column.name.lower()))
    good = []
    for form in off:
        if form.kind in {"down", "above"}:
            own = set(_WORD.findall(split_name(ratio.others[form.first].name)[0]))
            is_told = form.kind == "above" and bool(own) and own <= words and bool(ratio.bases(form))
            is_short = len(set(ratio.rows) - set(ratio.bases(form))) < _ROWS_MIN
        else:
            names = (ratio.others[at].name.lower() for at in (form.first, form.second))
            is_told, is_short = all(words & set(_WORD.findall(name)) for name in names), len(ratio.rows) < _ROWS_MIN
        good += [form] if is_told and is_short else []
    return _nearest(ratio, off, good)


def _only(ratio: _Ratio, off: _Off) -> _Form | None:
    """The form of the only numbers that the table has beside its settings, where it gives all rows but one."""
    plain = [at for at, each in ratio.others.items() if not column_of(each.name)]
    kinds = {1: {"above"}, _PAIR: {"across", "either", "less"}}.get(len(plain), set())
    own = [form for form in off if form.kind in kinds and {form.first, form.second} - {1, -1} <= {*plain}]
    good = [form for form in own if len(off[form]) <= 1 and _told(ratio, form, off[form])]
    return _nearest(ratio, off, good)


def _line(ratio: _Ratio, row: int, form: _Form) -> str:
    operands, expected = ratio.operands(form, row), ratio.expected(form, row)
    (over, _), (under, _) = operands or ((0.0, 0.0), (1.0, 0.0))
    names = [ratio.others[at].name for at in (form.first, form.second) if at in ratio.others][: _width(form)]
    quotient = f"{over:g} / {under:g} = {over / under:.4g} ({' over '.join(names)})"
    shown = f"{ratio.column.name} is {ratio.column.values[row]:g}, but {quotient}"
    said = f"{expected[0] if expected else 0.0:.4g}"
    return shown if said == f"{over / under:.4g}" else f"{shown}, which is {said} so written"


def _width(form: _Form) -> int:
    """How many columns a form is of."""
    return 1 if form.kind in {"down", "above"} else _PAIR
