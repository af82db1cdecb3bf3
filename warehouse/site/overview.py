"""The overview: a line for each model, machine, engine and length of prompt and answer, with what people ask first."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from warehouse.schema.row import Row
from warehouse.site.frontier import EARLIER, NEWEST, PRICE, SPEED, value_at

TIERS = (20, 50, 100)  # tok/s per user, at which a price is stated
PER_USD, WITHIN_SLO = "output_tok_per_usd", "goodput_tok_per_s"
KEY = ("model", "precision", "machine", "engine", "isl", "osl")
ACCEPTED = "accepted"


@dataclass(frozen=True)
class Cell:
    """One number: its change against the earlier night in percent, or why there is none."""

    value: float | None = None
    change_pct: float | None = None
    missing: str | None = None


@dataclass(frozen=True)
class Line:
    """One line: the newest night with accepted runs, the earlier one it is compared with, and its cells by name.

    `tried` is the newest night in which it was planned, and `result` what came of it.
    """

    key: Mapping[str, Any]
    gpus: str | None
    engine_version: str | None
    night: str | None
    measured_at: datetime | None
    compared_with: str | None
    tried: str
    result: str
    cells: Mapping[str, Cell]

    def row(self) -> Row:
        """The line with a column for each cell, its change and why it is missing."""
        facts: Row = {**self.key, **{name: value for name, value in vars(self).items() if name not in {"key", "cells"}}}
        for name, cell in self.cells.items():
            facts |= {name: cell.value, f"{name}_change_pct": cell.change_pct, f"{name}_missing": cell.missing}
        return facts


def tier(speed: int) -> str:
    """The name of the cell with the price at a speed of one user."""
    return f"usd_per_mtok_at_{speed}_tok_per_s"


def lower_is_better(cell: str) -> bool:
    """Whether less of it is better: a price."""
    return cell.startswith("usd_")


def overview(points: Sequence[Row], tried: Sequence[Row]) -> list[Line]:
    """A line for each setup that was ever planned, from the rows of POINTS and TRIED."""
    measured: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in points:
        measured[_key(row)].append(row)
    return [_line(row, measured.get(_key(row), ())) for row in tried]


def _key(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in KEY)


def _line(tried: Row, points: Sequence[Row]) -> Line:
    newest, earlier = ([row for row in points if row["when"] == when] for when in (NEWEST, EARLIER))
    first: Row = max(newest, key=lambda row: row["measured_at"], default={})
    return Line(
        key={name: tried[name] for name in KEY},
        gpus=first.get("gpus"),
        engine_version=first.get("engine_version"),
        night=first.get("night"),
        measured_at=first.get("measured_at"),
        compared_with=earlier[0]["night"] if earlier else None,
        tried=tried["night"],
        result=tried["result"],
        cells=dict(_cells(newest, earlier, tried["result"])),
    )


def _cells(newest: Sequence[Row], earlier: Sequence[Row], result: str) -> Iterator[tuple[str, Cell]]:
    for speed in TIERS:
        why = _why_no_price(newest, speed) if newest else result
        yield tier(speed), _cell(newest, earlier, partial(_price_at, speed=speed), why)
    yield PER_USD, _cell(newest, earlier, _per_usd, _why_unpriced(newest) if newest else result)
    yield WITHIN_SLO, _cell(newest, earlier, _within_slo, "no SLO" if newest else result)


def _cell(
    newest: Sequence[Row], earlier: Sequence[Row], measure: Callable[[Sequence[Row]], float | None], why: str
) -> Cell:
    value, before = measure(newest), measure(earlier)
    if value is None:
        return Cell(missing=why)
    return Cell(value, (value / before - 1) * 100 if before else None)


def _price_at(rows: Sequence[Row], speed: float) -> float | None:
    return value_at(rows, PRICE, speed)


def _per_usd(rows: Sequence[Row]) -> float | None:
    """Output tokens for a dollar at the load that makes most of them."""
    return max((1e6 / row[PRICE] for row in rows if row[PRICE]), default=None)


def _within_slo(rows: Sequence[Row]) -> float | None:
    """Output tokens a second of requests within the SLO, at the load that has most of them."""
    return max((row[WITHIN_SLO] for row in rows if row[WITHIN_SLO] is not None), default=None)


def _why_no_price(rows: Sequence[Row], speed: float) -> str:
    if not any(row[PRICE] for row in rows):
        return _why_unpriced(rows)
    slowest, fastest = (end(row[SPEED] for row in rows if row[PRICE]) for end in (min, max))
    return f"at most {fastest:.3g} tok/s" if speed > fastest else f"measured from {slowest:.3g} tok/s"


def _why_unpriced(rows: Sequence[Row]) -> str:
    return "costs nothing" if any(row[PRICE] == 0 for row in rows) else "no price"
