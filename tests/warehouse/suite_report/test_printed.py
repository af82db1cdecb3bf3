"""Figures that a suite's report holds itself: beside their rows, compared by the terms that their source states."""

import re
from pathlib import Path
from typing import Any

import pytest

from bench.errors import UsageError
from bench.suite.report import ReportTable
from infra.loadgen.suite_file import parse_suite_file
from tests.warehouse.importers.reading import SHARED
from warehouse.suite_report.build import asked_scenarios
from warehouse.suite_report.measured import Measured, NightValues
from warehouse.suite_report.scenario_rows import scenario_rows
from warehouse.suite_report.summaries import level_rows, peak_rows

STUDY = parse_suite_file(Path(__file__).parents[3] / "suites" / "mi325x-study.toml")[0]
TABLES = {table.title: table for table in STUDY.report.tables}
FACTS = SHARED.parent / "facts" / "works.md"
LLAMA = "scaling/concurrency=5@llama-3.1-405b"
OURS: dict[str, Any] = {
    "model_source": "hf:amd/Llama-3.1-405B-Instruct-FP8-KV@abc",
    "precision": "fp8",
    "gpus": ["AMD Instinct MI325X"] * 8,
    "gpu_count": 8,
    "isl": 329,
    "osl": 200,
    "concurrency_asked": 5,
    "output_throughput_tok_per_s": 200.0,
    "total_input_tokens": 329,
    "total_output_tokens": 200,
}


def _row(name: str, table: ReportTable, **changes: Any) -> dict[str, Any]:
    """The row of one scenario that was measured with these values."""
    values = NightValues("2026-03-01", {name: Measured("accepted", (OURS | changes,))})
    build = level_rows if table.kind == "levels" else scenario_rows
    scenarios = [one for one in asked_scenarios(STUDY) if one.name == name]
    (row,) = build(STUDY, table, scenarios, values)
    return row


def test_a_printed_figure_has_a_ratio_and_names_what_its_source_does_not_state() -> None:
    row = _row(LLAMA, TABLES["Scaling"])

    assert (row["published"], row["published_verdict"]) == ("423 tok/s", None)
    assert row["ratio"] == pytest.approx(200 * (1 + 329 / 200) / 423)
    assert row["terms"] == "equal as far as stated; not stated there: isl, osl"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model_source": "generated:tiny?seed=0"}, "not compared; model: Llama-3.1-405B published, generated:tiny"),
        ({"precision": "bf16"}, "not compared; precision: fp8 published, bf16 here"),
        ({"gpu_count": 4}, "not compared; GPU count: 8 published, 4 here"),
        ({"concurrency_asked": 2}, "not compared; load: 5 published, 2 here"),
    ],
)
def test_a_printed_figure_is_not_compared_where_terms_differ(changes: dict[str, Any], said: str) -> None:
    row = _row(LLAMA, TABLES["Scaling"], **changes)

    assert (row["ratio"], row["terms"].startswith(said)) == (None, True), row["terms"]


def test_what_makes_a_comparison_meaningless_is_in_the_cell() -> None:
    stress, images = TABLES["Stress"], TABLES["Scaling with images"]
    long = _row("stress/isl=4096,osl=200,concurrency=25@llama-3.1-405b", stress, concurrency_asked=25)
    seen = _row("vision-scaling/concurrency=5@qwen3-vl-235b", images)

    assert (long["ratio"], seen["ratio"]) == (None, None)
    assert "its rates say 2420 tokens in" in long["terms"]
    assert "the size of its images is not published" in seen["terms"]


def test_a_peak_has_the_printed_one_beside_it() -> None:
    table = TABLES["Multi-run, peak of each model"]
    scenarios = [one for one in STUDY.expand() if one.name.startswith("multi-run") and "llama" in one.name]
    values = NightValues("2026-03-01", {one.name: Measured("accepted", (OURS,)) for one in scenarios})

    (row,) = peak_rows(STUDY, table, scenarios, values)

    assert (row["published"], row["ratio"]) == ("6808 tok/s", pytest.approx(529 / 6808))


def test_every_printed_figure_is_of_a_row_that_is_there() -> None:
    rows = {one.name for one in asked_scenarios(STUDY)} | {one.name for one in STUDY.models}

    assert [name for table in TABLES.values() for name in table.printed if name not in rows] == []
    assert sum(len(table.printed) for table in TABLES.values()) == 78


def test_a_term_that_is_no_column_of_published_figures_is_refused() -> None:
    wrong = TABLES["Scaling"].model_copy(update={"printed_terms": {"lengths": "329"}})

    with pytest.raises(UsageError, match="'lengths', which is not a column of catalog"):
        _row(LLAMA, wrong)


@pytest.mark.skipif(not FACTS.exists(), reason="../shared/facts is not here")
def test_every_printed_figure_stands_in_the_facts() -> None:
    numbers = set(re.findall(r"\d+", FACTS.read_text("utf-8")))

    assert {f"{value:g}" for table in TABLES.values() for value in table.printed.values()} <= numbers
