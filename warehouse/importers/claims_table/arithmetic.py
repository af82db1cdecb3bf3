"""What a table says of itself: its totals, means and ratios against the numbers that they are made of."""

from collections.abc import Iterator, Sequence
from math import isnan
from statistics import fmean, geometric_mean, harmonic_mean, median, pstdev, stdev

import numpy as np

from bench.audit.column_relations import APART_MIN, Column, Miss, misses_of_relations
from bench.audit.evidence.rounding import half_unit
from bench.metrics import Floats
from warehouse.importers.claims_table.ratios import RATIO, misses_of_ratios
from warehouse.importers.claims_table.vocabulary import column_of
from warehouse.importers.parsing.printed import read_quantity
from warehouse.importers.tables.cells import is_summary
from warehouse.importers.tables.table import Row, Table

_COMPARED_MAX = 60  # rows of a table that is read on its side too


def misses_of(table: Table) -> list[Miss]:
    """Every number of a table that does not follow from the others, with its arithmetic."""
    summaries = [at for at, row in enumerate(table.rows) if is_summary(row)]
    columns = [_column(table, at) for at in range(len(table.header))]
    plain = [_without(each, summaries) for each in columns if np.isfinite(each.values).any()]
    found = [*_summaries(table, columns, summaries), *misses_of_ratios(table, plain), *_of_compared_rows(table)]
    found += misses_of_relations(plain)
    return list({(miss.row, miss.column): miss for miss in reversed(found)}.values())[::-1]


def _of_compared_rows(table: Table) -> Iterator[Miss]:
    """The same for rows that are named as ratios of others, `Speedup | 2.5x | 3.0x`: of the table on its side."""
    names = [row.cells[0] for row in table.rows]
    if len(names) > _COMPARED_MAX or not any(RATIO.search(name) for name in names):
        return
    turned = tuple(
        Row(table.rows[0].line, (title, *(row.cells[at] for row in table.rows)))
        for at, title in enumerate(table.header[1:], start=1)
    )
    side = Table((table.header[0], *names), turned)
    columns = [_column(side, at) for at in range(1, len(side.header))]
    for miss in misses_of_ratios(side, [each for each in columns if np.isfinite(each.values).any()]):
        yield Miss(miss.column - 1, miss.row + 1, miss.arithmetic)


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
        for column in () if word == "overall" else columns:  # a sum of some columns and a mean of others
            parts, stated = column.values[rows], float(column.values[at])
            if len(parts) < 2 or not np.isfinite(parts).all() or not np.isfinite(stated):  # noqa: PLR2004 - of one, nothing
                continue
            loose = float(column.halves[at]) + float(
                column.halves[rows].sum() if "tot" in word or "sum" in word else column.halves[rows].max()
            )
            weights = [each.values[rows] for each in columns if each is not column]
            near = min(_summed(word, parts, weights), key=lambda each: abs(each[1] - stated))
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


def _summed(word: str, parts: Floats, weights: Sequence[Floats]) -> list[tuple[str, float]]:
    """What a row of this word may state of these numbers; a mean may be weighted by a column of counts."""
    values = [float(part) for part in parts]
    if "tot" in word or "sum" in word:
        return [("sum", sum(values))]
    if "std" in word or "deviation" in word:
        return [("standard deviation", stdev(values)), ("standard deviation", pstdev(values))]
    if word == "median":
        return [("median", median(values))]
    means = [("mean", fmean(values)), ("median", median(values))]
    known = [each for each in weights if np.isfinite(each).all() and each.min() > 0 and (each % 1 == 0).all()]
    means += [("weighted mean", float(np.average(parts, weights=each))) for each in known]
    if min(values) > 0:
        means += [("geometric mean", geometric_mean(values)), ("harmonic mean", harmonic_mean(values))]
    return means
