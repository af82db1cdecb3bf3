"""Each suite of a published work in its local shape, with programs of known results in the engine's place."""

import json
from itertools import pairwise
from pathlib import Path

import pytest

from infra.loadgen.suite_file import parse_suite_file
from infra.storage import store
from tests.flows.conftest import NightFixture, run_nightly
from tests.flows.told import read_told
from tests.flows.told_tables import CELLS, Tables, no_cells, wrong_cells
from tests.flows.truth_programs import use_truth_programs
from tests.warehouse.site.test_browser import CHROMIUM, hold
from warehouse.lake.query import run_sql

pytestmark = [
    pytest.mark.matrix,
    pytest.mark.timeout(1500),
    pytest.mark.usefixtures("calibrated", "nights_without_prefect"),
]
SUITES = Path(__file__).parents[2] / "suites"
# Tables that may have nothing to compare: of the catalogue, of sources and, for commands, of the setup.
MAYBE_NOTHING_TOLD = {"setup", *(kind for kind, cells in CELLS.items() if cells is no_cells)}
# The suite of each work, and how many rows some of its tables have, as many as the published ones.
WORKS = {
    "llama-3.3-70b-mi300x": {"Throughput summary": 9},
    "llama-3.3-70b-mi300x-concurrency": {"Each level": 2 * 6},
    "amd-mi300x-throughput": {"Throughput of generated tokens": 8, "Latency of a whole batch": 32},
    "amd-mi300x-training": {"PyTorch FSDP on MI300X": 7 * 4, "PyTorch FSDP on MI325X": 7 * 4},
    "llama-4-mi300x-h200": {"Each machine": 30},
    "mi325x-study": {"Scaling": 3 * 8, "Stress": 4 * 3 + 2 * 4, "Quick": 2 * (6 + 4), "AITER on over off": 7 + 1},
    "rocm-cuda-deep-dive": {"Throughput": 18, "llama.cpp": 12, "Throughput of cards of 24 GB": 3},
    "rocm-cuda-deep-dive-f16": {"llama.cpp": 2},
}


@pytest.mark.parametrize("name", WORKS)
def test_each_cell_of_a_works_report_is_what_the_programs_were_told(
    house: NightFixture, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, path = use_truth_programs(house, monkeypatch), SUITES / f"{name}.toml"

    night = run_nightly(house, suite=path).night

    planned, (suite, _) = store.read_night(house.data, night), parse_suite_file(path)
    _require_measured(house, night, [run.scenario.name for run in planned.runs])
    report = json.loads(house.call("report", night, "--suite", str(path), "--format", "json").stdout)
    rows = {table["title"]: table["rows"] for table in report["tables"]}
    assert {title: len(rows[title]) for title in WORKS[name]} == WORKS[name]
    merged = planned.suite.merged | {one: planned.suite.merged.get(of, of) for one, of in suite.merged.items()}
    tables = Tables(suite, read_told(house.data, night, planned.runs, log), merged)
    shown = [table for table in suite.report.tables if rows.get(table.title)]
    found = {table.title: wrong_cells(tables, table, rows[table.title]) for table in shown}
    assert [wrong for _count, all_wrong in found.values() for wrong in all_wrong] == []
    told = [table.title for table in shown if table.kind not in MAYBE_NOTHING_TOLD]
    assert [title for title in told if found[title][0] == 0] == []
    if CHROMIUM is not None:
        _require_readable(house, night, path)
    # A miniature is compared with no published speed, only with a share of requests.
    compared = {title for title in told for row in rows[title] if row.get("ratio") and row.get("published")}
    assert compared <= {"Totals"}


def _require_readable(house: NightFixture, night: str, suite: Path) -> None:
    """The page of the report in a browser: all is readable, in its window, and loads nothing from elsewhere."""
    page = house.data / f"{suite.stem}.html"
    page.write_text(house.call("report", night, "--suite", str(suite), "--format", "html").stdout)
    hold(page)


def _require_measured(house: NightFixture, night: str, planned: list[str]) -> None:
    """Every run of the plan is measured; machines follow each other, models are apart, and nothing is left behind."""
    sql = "SELECT scenario, outcome, reason, model_source, model_sha256 FROM measurements WHERE night = ?"
    found = run_sql(house.data, sql, (night,)).dicts()
    assert [row for row in found if row["outcome"] != "measured"] == []
    assert set(planned) <= {row["scenario"] for row in found}
    models = {(row["model_source"], row["model_sha256"]) for row in found if row["model_sha256"] is not None}
    assert len(models) == len({source for source, _ in models}) == len({sha256 for _, sha256 in models})
    leases = run_sql(house.data, "SELECT machine, rented_at, released_at FROM leases ORDER BY rented_at").rows
    others = [(one, after) for one, after in pairwise(leases) if one[0] != after[0]]  # nodes of one machine overlap
    assert [one for one, after in others if one[2] > after[1]] == []
    assert house.leftovers() == []
