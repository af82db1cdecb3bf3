"""What a table says of itself: its totals, means and ratios against the numbers that they are made of."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from math import isnan
from statistics import fmean, geometric_mean, harmonic_mean, median, pstdev, stdev

import numpy as np

from bench.audit.column_relations import APART_MIN, Column, Miss, misses_of_relations
from bench.audit.evidence.rounding import half_unit
from warehouse.importers.claims_table.vocabulary import column_of
from warehouse.importers.parsing.printed import read_quantity
from warehouse.importers.tables.cells import is_summary
from warehouse.importers.tables.table import Table

_RATIO = re.compile(
    r"speed[- ]?ups?|(?:\b|_)(?:vs|versus|ratios?|improvements?|faster|slower|gains?|uplift|delta|changes?|differences?|diff"
    r"|scaling|relative|efficiency)(?:\b|_)|Δ|δ",  # `Duration` has no ratio
    re.IGNORECASE,
)
_ROWS_MIN, _MATCHED_MIN = 3, 2
_NUMBERS_MAX = 200  # columns times rows beyond which pairs of columns are not tried
_PERCENT = 100.0


def misses_of(table: Table) -> list[Miss]:
    """Every number of a table that does not follow from the others, with its arithmetic."""
    summaries = [at for at, row in enumerate(table.rows) if is_summary(row)]
    columns = [_column(table, at) for at in range(len(table.header))]
    plain = [_without(each, summaries) for each in columns if np.isfinite(each.values).any()]
    found = [*_summaries(table, columns, summaries), *_ratios(table, plain), *misses_of_relations(plain)]
    return list({(miss.row, miss.column): miss for miss in reversed(found)}.values())[::-1]


def _column(table: Table, at: int) -> Column:
    quantities = [read_quantity(row.cells[at]) for row in table.rows]
    numbers = [np.nan if each is None or each.number is None else each.number for each in quantities]
    known = [number for number in numbers if not isnan(number)]
    is_count = all(number == int(number) for number in known) and (
        bool(column_of(table.header[at])) or _is_setting(known)
    )
    rough = [10.0 if each is not None and each.qualifier == "about" else 1.0 for each in quantities]
    halves = [
        0.0 if is_count or isnan(number) else half_unit(number) * more
        for number, more in zip(numbers, rough, strict=True)
    ]
    return Column(at, table.header[at], np.array(numbers), np.array(halves))


def _is_setting(numbers: Sequence[float]) -> bool:
    """Whether whole numbers were chosen and not rounded: they repeat, or each is a power of two."""
    return len(set(numbers)) * 2 <= len(numbers) or all(
        number > 0 and number.bit_count() == 1 for number in map(int, numbers)
    )


def _without(column: Column, rows: Sequence[int]) -> Column:
    values = column.values.copy()
    values[list(rows)] = np.nan
    return Column(column.at, column.name, values, column.halves)


def _summaries(table: Table, columns: Sequence[Column], summaries: Sequence[int]) -> Iterator[Miss]:
    """The numbers of a row of totals, means or deviations that no such sum of the rows above it gives.

    A row in which nothing fits, of several numbers, is of something else: rows that the table does not show.
    """
    begin = 0
    for at in summaries:
        word = next(cell for cell in table.rows[at].cells if cell).strip(" :*").lower()
        rows = [row for row in range(begin, at) if row not in summaries]
        misses, fits = [], 0
        for column in columns:
            parts, stated = column.values[rows], float(column.values[at])
            if len(parts) < 2 or not np.isfinite(parts).all() or not np.isfinite(stated):  # noqa: PLR2004 - of one, nothing
                continue
            loose = float(column.halves[at]) + float(
                column.halves[rows].sum() if "tot" in word or "sum" in word else column.halves[rows].max()
            )
            near = min(_summed(word, parts), key=lambda each: abs(each[1] - stated))
            if abs(near[1] - stated) <= loose + 1e-9 * abs(stated):
                fits += 1
            elif abs(near[1] - stated) > APART_MIN * abs(near[1]):
                shown = " + ".join(f"{part:g}" for part in parts[:6]) + (" + ..." if len(parts) > 6 else "")  # noqa: PLR2004 - of a line
                over = f" / {len(parts)}" if near[0] == "mean" else ""
                line = (
                    f"{near[0]} of ({shown}){over} = {near[1]:.6g}" if over else f"{near[0]} of {shown} = {near[1]:.6g}"
                )
                misses.append(Miss(at, column.at, f"{word} of {column.name} is {stated:.6g}, but {line}"))
        if fits or len(misses) == 1:
            yield from misses
        if at + 1 not in summaries:
            begin = at + 1


def _summed(word: str, parts: np.ndarray) -> list[tuple[str, float]]:
    values = [float(part) for part in parts]
    if "tot" in word or "sum" in word:
        return [("sum", sum(values))]
    if "std" in word or "deviation" in word:
        return [("standard deviation", stdev(values)), ("standard deviation", pstdev(values))]
    if word == "median":
        return [("median", median(values))]
    means = [("mean", fmean(values)), ("median", median(values))]
    if min(values) > 0:
        means += [("geometric mean", geometric_mean(values)), ("harmonic mean", harmonic_mean(values))]
    return means


_Form = tuple[str, int, int, bool]  # how a ratio is made of two columns, and whether it is printed as a share


def _ratios(table: Table, columns: Sequence[Column]) -> Iterator[Miss]:
    """Numbers of columns that are named as ratios: one is found that gives all but one or a few of them."""
    by_place = {each.at: each for each in columns}
    has_pairs = len(columns) * len(table.rows) <= _NUMBERS_MAX
    for ratio in columns:
        if not _RATIO.search(ratio.name):
            continue
        rest = [each for each in columns if each.at != ratio.at and not _RATIO.search(each.name)]
        is_percent = _is_percent(table, ratio.at)
        forms = [form for form in _forms(rest, is_percent=is_percent) if has_pairs or form[0] == "down"]
        yield from _of_ratio(ratio, forms, is_percent, by_place)


def _is_percent(table: Table, at: int) -> bool:
    return "%" in table.header[at] or any("%" in row.cells[at] for row in table.rows)


def _of_ratio(
    ratio: Column,
    tried: Sequence[_Form],
    is_percent: bool,
    by_place: Mapping[int, Column],
) -> Iterator[Miss]:
    rows = [int(row) for row in np.flatnonzero(np.isfinite(ratio.values))]
    if not rows:
        return
    forms = {form: _given(form, by_place, rows, is_percent=is_percent) for form in tried}
    named = [form for form in forms if form[0] != "down" and _names_both(ratio.name, form, by_place)]
    best: tuple[int, _Form, list[int]] | None = None
    for form, given in forms.items():
        off = [row for row in rows if not _is_near(ratio, row, given.get(row))]
        fits = [row for row in rows if row not in off]
        same = (_PERCENT if is_percent else 1.0) if form[3] else 0.0
        told = [row for row in fits if abs(float(ratio.values[row]) - same) > APART_MIN]
        if len(told) >= _MATCHED_MIN and len(off) <= max(1, len(rows) // 4) and (best is None or len(off) < best[0]):
            best = (len(off), form, off)
    if best is None and len(named) >= 1 and len(rows) < _ROWS_MIN:
        of_named = {form: [row for row in rows if not _is_near(ratio, row, forms[form].get(row))] for form in named}
        form = min(of_named, key=lambda each: len(of_named[each]))
        best = (len(of_named[form]), form, of_named[form])
    for row in best[2] if best else ():
        expected = forms[best[1]].get(row) if best else None
        if expected is not None and best is not None and not _is_near(ratio, row, expected, APART_MIN):
            yield Miss(row, ratio.at, _ratio_line(ratio, row, best[1], by_place, expected))


def _forms(rest: Sequence[Column], *, is_percent: bool) -> Iterator[_Form]:
    """Percents are of one kind down a column: 13 % more, or 113 % of it."""
    for is_share in (False, True) if is_percent else (True,):
        for one, other in permutations(rest, 2):
            yield "across", one.at, other.at, is_share
        for each in rest:
            yield "down", each.at, 1, is_share
            yield "down", each.at, -1, is_share
    yield from (("less", one.at, other.at, False) for one, other in permutations(rest, 2))


def _given(form: _Form, columns: Mapping[int, Column], rows: Sequence[int], *, is_percent: bool) -> dict[int, float]:
    """What this form gives in each row, as a factor or in percent; `less` is how much less, `across` how much more."""
    kind, first, second, is_share = form
    values = columns[first].values
    found: dict[int, float] = {}
    for row in rows:
        if kind == "down":
            base, own = float(values[rows[0]]), float(values[row])
            over, under = (own, base) if second == 1 else (base, own)
        else:
            over, under = float(values[row]), float(columns[second].values[row])
        if np.isfinite(over) and np.isfinite(under) and under:
            share = over / under
            shown = 1 - share if kind == "less" else share if is_share else share - 1
            found[row] = shown * _PERCENT if is_percent else shown
    return found


def _is_near(ratio: Column, row: int, expected: float | None, more: float = 0.0) -> bool:
    if expected is None:
        return False
    stated = float(ratio.values[row])
    return abs(expected - stated) <= 1.05 * float(ratio.halves[row]) + 0.005 * abs(expected) + more * max(
        abs(expected), abs(stated)
    )


def _names_both(name: str, form: _Form, columns: Mapping[int, Column]) -> bool:
    words = set(re.findall(r"[a-z0-9]+", name.lower()))
    return all(words & set(re.findall(r"[a-z0-9]+", columns[at].name.lower())) for at in form[1:3])


def _ratio_line(ratio: Column, row: int, form: _Form, columns: Mapping[int, Column], expected: float) -> str:
    kind, first, second, _ = form
    if kind == "down":
        base, own = columns[first].values[np.isfinite(columns[first].values)][0], columns[first].values[row]
        over, under = (own, base) if second == 1 else (base, own)
        of_what = columns[first].name
    else:
        over, under = columns[first].values[row], columns[second].values[row]
        of_what = f"{columns[first].name} over {columns[second].name}"
    quotient = f"{over:g} / {under:g} = {over / under:.4g} ({of_what})"
    shown = f"{ratio.name} is {ratio.values[row]:g}, but {quotient}"
    return shown if f"{expected:.4g}" == f"{over / under:.4g}" else f"{shown}, which is {expected:.4g} so written"
