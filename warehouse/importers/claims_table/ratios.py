"""Ratios that a table states, against the numbers that they are made of: two of a row, or one of a row and its base.

A ratio is known by its name (`Speedup`, `vs baseline`), in the header or, of a comparison, in the first cell of its
row; what its numbers measure need not be known. It is computed in each way that gives most of its column.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Literal

import numpy as np

from bench.audit.column_relations import APART_MIN, Column, Miss
from bench.metrics import Bools, Floats, Ints
from warehouse.importers.claims_table.vocabulary import column_of, metric_of
from warehouse.importers.parsing.printed_units import split_name
from warehouse.importers.tables.table import Table

RATIO = re.compile(
    r"speed[- _]?ups?|(?:\b|_)(?:vs|versus|ratios?|improvements?|faster|slower|gains?|uplift|delta|changes?"
    r"|differences?|diff|scaling|relative|efficiency)(?:\b|_)|(?<![\w-])[Δδ]",  # `Duration` has no ratio
    re.IGNORECASE,
)
_ROWS_MIN, _MATCHED_MIN = 3, 2
_NUMBERS_MAX = 200  # columns times rows beyond which pairs of columns are not tried
_BASES_MAX = 8  # rows without a ratio of which each is tried as the base of all others
_PERCENT = 100.0
_PAIR = 2
_WORD = re.compile(r"[a-z0-9]+")


@dataclass(frozen=True)
class _Form:
    """How a ratio is made: of two columns, or of one and its own number in the base's row.

    `either`: of two columns, whichever is the larger or the smaller, as the rows are of several metrics. `down` has
    the first row as base, `above` the nearest row above that states no change, or with `base` that row for all.
    `second` is a column, or for one column 1 for the row's number over the base's and -1 for the reverse. `is_share`:
    1.13, and not 0.13 more.
    """

    kind: Literal["across", "either", "less", "down", "above"]
    first: int
    second: int
    is_share: bool
    base: int | None = None


@dataclass(frozen=True)
class _Made:
    """What a form makes of each row that states a ratio, from which two numbers; NaN where one of them is missing."""

    over: Floats
    under: Floats
    expected: Floats
    apart: Floats  # how far the stated number is from it
    near: Floats  # how far what is printed explains
    larger: Floats  # of the stated and the expected number

    @property
    def off(self) -> Bools:
        """The rows whose ratio the form does not give."""
        return ~(self.apart <= self.near)

    @property
    def far_off(self) -> Bools:
        """The rows whose ratio is another one; not those that lack a number."""
        return self.apart > self.near + APART_MIN * self.larger


@dataclass(frozen=True)
class _Ratio:
    """A column of ratios with the other numbers of its table, and the rows in which it has a number."""

    column: Column
    others: Mapping[int, Column]
    rows: Ints
    is_percent: bool

    @property
    def stated(self) -> Floats:
        """The ratios."""
        return self.column.values[self.rows]

    def same(self, form: _Form) -> float:
        """What states no change."""
        return (_PERCENT if self.is_percent else 1.0) if form.is_share else 0.0

    def bases(self, form: _Form) -> Ints:
        """The rows that state no change, or nothing, beside a number."""
        stated, own = self.column.values, self.others[form.first].values
        return np.flatnonzero(np.isfinite(own) & ((stated == self.same(form)) | ~np.isfinite(stated)))

    def made(self, form: _Form) -> _Made:
        """What the form gives in each row, and how far rounding may move it."""
        over, over_half, under, under_half = self._operands(form)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where((over != 0) & (under != 0), over / under, np.nan)
            if form.kind == "either":
                one, other = (np.abs(self._shown(form, each) - self.stated) for each in (share, 1 / share))
                share = np.where(other < one, 1 / share, share)
            loose = np.abs(share) * (over_half / np.abs(over) + under_half / np.abs(under))
        expected = self._shown(form, share)
        near = 1.05 * self.column.halves[self.rows] + loose * (_PERCENT if self.is_percent else 1.0)
        larger = np.maximum(np.abs(expected), np.abs(self.stated))
        return _Made(over, under, expected, np.abs(expected - self.stated), near + 0.005 * np.abs(expected), larger)

    def _operands(self, form: _Form) -> tuple[Floats, Floats, Floats, Floats]:
        """The two numbers of each row, each with half a unit of its last digit."""
        first, rows = self.others[form.first], self.rows
        if form.kind not in {"down", "above"}:
            places = ((first, rows), (self.others[form.second], rows))
        else:
            bases = rows[:1] if form.kind == "down" else self.bases(form)
            bases = bases if form.base is None else np.array([form.base])
            if not bases.size:
                nothing = np.full(len(rows), np.nan)
                return nothing, nothing, nothing, nothing
            # The nearest one above or in the row, else the first one.
            base = bases[np.maximum(np.searchsorted(bases, rows, side="right") - 1, 0)]
            places = ((first, rows), (first, base)) if form.second == 1 else ((first, base), (first, rows))
        (over, at), (under, below) = places
        return over.values[at], over.halves[at], under.values[below], under.halves[below]

    def _shown(self, form: _Form, share: Floats) -> Floats:
        shown = 1 - share if form.kind == "less" else share if form.is_share else share - 1
        return shown * _PERCENT if self.is_percent else shown


def misses_of_ratios(table: Table, columns: Sequence[Column]) -> Iterator[Miss]:
    """The numbers of columns that are named as ratios which the others do not give, where they give the rest."""
    named = [each for each in columns if RATIO.search(each.name)]
    rest = {each.at: each for each in columns if not RATIO.search(each.name)}
    has_pairs = len(columns) * len(table.rows) <= _NUMBERS_MAX
    is_of_metrics = bool(table.rows) and all(metric_of(row.cells[0]) is not None for row in table.rows)
    for column in named:
        rows = np.flatnonzero(np.isfinite(column.values))
        is_percent = "%" in column.name or any("%" in row.cells[column.at] for row in table.rows)
        if rows.size and rest:
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
                above = _Form("above", at, power, is_share)
                yield above
                bases = ratio.bases(above)
                if 1 < bases.size <= _BASES_MAX:
                    yield from (replace(above, base=int(base)) for base in bases)
    if np.median(ratio.stated) <= (_PERCENT if ratio.is_percent else 1.0):  # no part is larger than the whole
        yield from (_Form("less", one, other, is_share=False) for one, other in pairs)


def _misses(ratio: _Ratio, forms: Sequence[_Form]) -> Iterator[Miss]:
    made = {form: ratio.made(form) for form in forms}
    form = _fitting(ratio, made) or _named(ratio, made) or _only(ratio, made)
    if form:
        for at in np.flatnonzero(made[form].far_off):
            yield Miss(int(ratio.rows[at]), ratio.column.at, _line(ratio, form, made[form], int(at)))


_MadeBy = Mapping[_Form, _Made]


def _fitting(ratio: _Ratio, made: _MadeBy) -> _Form | None:
    """The form that gives most rows: two of them at least, and all but one or a quarter."""
    most = max(1, len(ratio.rows) // 4)
    good = [form for form in made if made[form].off.sum() <= most and _told(ratio, form, made) >= _MATCHED_MIN]
    return _nearest(made, good)


def _nearest(made: _MadeBy, forms: Sequence[_Form]) -> _Form | None:
    """The one of these that gives most rows; of several the one that is least off."""
    return min(forms, key=lambda form: (made[form].off.sum(), np.nansum(made[form].apart)), default=None)


def _told(ratio: _Ratio, form: _Form, made: _MadeBy) -> int:
    """How many rows fit that state a change larger than what rounding explains; any form gives the others."""
    change = np.abs(ratio.stated - ratio.same(form))
    return int((~made[form].off & (change > np.maximum(APART_MIN, made[form].near))).sum())


def _named(ratio: _Ratio, made: _MadeBy) -> _Form | None:
    """The form that the ratio's own name tells, in a table of few rows: `vLLM over HF`, `Wall vs reference`."""
    words = set(_WORD.findall(ratio.column.name.lower()))
    good = []
    for form in made:
        if form.kind in {"down", "above"}:
            own = set(_WORD.findall(split_name(ratio.others[form.first].name)[0]))
            is_told = form.kind == "above" and bool(own) and own <= words and ratio.bases(form).size > 0
            is_short = len(np.setdiff1d(ratio.rows, ratio.bases(form))) < _ROWS_MIN
        else:
            names = (ratio.others[at].name.lower() for at in (form.first, form.second))
            is_told, is_short = all(words & set(_WORD.findall(name)) for name in names), len(ratio.rows) < _ROWS_MIN
        good += [form] if is_told and is_short else []
    return _nearest(made, good)


def _only(ratio: _Ratio, made: _MadeBy) -> _Form | None:
    """The form of the only numbers that the table has beside its settings, where it gives all rows but one."""
    plain = [at for at, each in ratio.others.items() if not column_of(each.name)]
    kinds = {1: {"above"}, _PAIR: {"across", "either", "less"}}.get(len(plain), set())
    own = [form for form in made if form.kind in kinds and {form.first, form.second} - {1, -1} <= {*plain}]
    good = [form for form in own if made[form].off.sum() <= 1 and _told(ratio, form, made)]
    return _nearest(made, good)


def _line(ratio: _Ratio, form: _Form, made: _Made, at: int) -> str:
    over, under, expected = made.over[at], made.under[at], made.expected[at]
    names = [ratio.others[each].name for each in (form.first, form.second) if each in ratio.others][: _width(form)]
    quotient = f"{over:g} / {under:g} = {over / under:.4g} ({' over '.join(names)})"
    shown = f"{ratio.column.name} is {ratio.stated[at]:g}, but {quotient}"
    return shown if f"{expected:.4g}" == f"{over / under:.4g}" else f"{shown}, which is {expected:.4g} so written"


def _width(form: _Form) -> int:
    """How many columns a form is of."""
    return 1 if form.kind in {"down", "above"} else _PAIR
