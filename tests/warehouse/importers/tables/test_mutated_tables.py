"""Each number of a good table that a check covers is changed, and named; each form of table has the same numbers."""

from collections.abc import Callable, Iterable, Iterator

import pytest

from bench.audit.claim import Claim
from bench.audit.judge import Judged
from tests.bench.judging import judge_claims
from tests.warehouse.importers.tables.rendered import FORMS, Grid
from warehouse.importers import read_claims
from warehouse.importers.parsing.document import read_document
from warehouse.rows.catalog_subject import subject_of

# Users, TTFT and TPOT in ms.
SWEEP = ((8, 900, 9.5), (32, 2600, 21))
MEASURES = {"results": 8, "budgets": 5}  # numbers of a row that are held against others
FACTORS = (2.0, 10.0, 1e-3)
REQUESTS, ISL, OSL, USD_PER_H = 960, 1024, 256, 2.49


def _results() -> Iterator[list[str]]:
    """A sweep whose numbers are made of one another."""
    yield [
        *("Model", "Precision", "GPU", "TP", "ISL", "OSL", "Concurrency", "Successful requests", "Duration (s)"),
        *("Request throughput (req/s)", "Output throughput (tok/s)", "Total token throughput (tok/s)"),
        *("Mean TTFT (ms)", "Mean TPOT (ms)", "Mean E2EL (ms)", "$/hr", "USD per 1M output tokens"),
    ]
    for users, ttft_ms, tpot_ms in SWEEP:
        e2el_ms = ttft_ms + (OSL - 1) * tpot_ms
        rate = users / e2el_ms * 1e3
        output = rate * OSL
        cells = [
            users,
            REQUESTS,
            REQUESTS / rate,
            rate,
            output,
            rate * (ISL + OSL),
            ttft_ms,
            tpot_ms,
            e2el_ms,
            USD_PER_H,
        ]
        cost = USD_PER_H / 3600 / output * 1e6
        yield ["Llama-3.1-8B", "BF16", "H100 SXM", "1", str(ISL), str(OSL), *(f"{each:.6g}" for each in (*cells, cost))]


def _turned(grid: Grid) -> list[list[str]]:
    """The names in the first column and a column for each row, titled by its load."""
    by_column = [list(column) for column in zip(*grid, strict=True)]
    return [["Metric", *(f"run {at}" for at in range(1, len(grid)))], *by_column]


RESULTS = list(_results())
BUDGETS = [
    ["Model", "Precision", "GPU", "Weights (GB)", "KV cache (GB)", "Activations (GB)", "Used (GB)", "Free (GB)"],
    ["Llama-3.1-70B", "FP8", "MI300X", "70.6", "42.9", "8.1", "121.6", "70.4"],
    ["Llama-3.1-8B", "BF16", "H100 SXM", "16.1", "40.5", "4.2", "60.8", "19.2"],
]
TABLES = {"results": RESULTS, "budgets": BUDGETS}


def claims_of(form: str, grid: Grid) -> list[Claim]:
    return list(read_claims(read_document(f"table.{form}", FORMS[form](grid))))


def doubts(rows: list[Judged]) -> set[tuple[int, str]]:
    return {(at, each.code) for at, row in enumerate(rows) for each in row.findings if each.status in ("WARN", "FAIL")}


def numbers(grid: Grid) -> Iterator[tuple[int, int]]:
    for down, row in enumerate(grid[1:], start=1):
        yield from ((down, at) for at, cell in enumerate(row) if cell.replace(".", "").isdigit())


def changed(grid: Grid, places: Iterable[tuple[int, int]], factor: float) -> list[list[str]]:
    copied = [list(row) for row in grid]
    for down, at in places:
        copied[down][at] = f"{float(copied[down][at]) * factor:.8g}"
    return copied


@pytest.mark.parametrize("table", TABLES)
def test_each_changed_number_that_a_check_covers_is_named(table: str) -> None:
    grid = TABLES[table]
    good = judge_claims(claims_of("csv", grid), subject_of)

    first = good[0]
    cells = {name: cell for name, cell in first.claim.cells.items() if name in first.coverage.checked}
    silent = [
        (name, factor)
        for name, (_, down, at) in cells.items()
        for factor in FACTORS
        if not doubts(judge_claims(claims_of("csv", changed(grid, [(down + 1, at)], factor)), subject_of))
    ]

    assert doubts(good) == set()
    assert len(cells) >= MEASURES[table]
    assert silent == []


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("form", [form for form in FORMS if form != "csv"])
@pytest.mark.parametrize("side", [list, _turned])
def test_each_number_is_the_same_one_in_each_form_of_table(
    form: str, table: str, side: Callable[[Grid], list[list[str]]]
) -> None:
    for grid in (TABLES[table], changed(TABLES[table], numbers(TABLES[table]), 3.0)):
        assert [_read(claim) for claim in claims_of(form, side(grid))] == [_read(c) for c in claims_of("csv", grid)]


def _read(claim: Claim) -> tuple[object, ...]:
    arithmetic = sorted(line.arithmetic for line in claim.budget)
    return claim.said, claim.latency_s, claim.asked.usd_per_hour, arithmetic
