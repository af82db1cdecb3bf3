"""Published figures whose sources state few terms or none, and names of figures that fit none: each is a row."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from bench.catalog.published import Published
from bench.suite.report import Report, ReportTable
from tests.warehouse.folders import Shape, suite, write_night, write_run
from warehouse.load import load_night
from warehouse.suite_report.build import build_report
from warehouse.suite_report.measured import Measured, Value
from warehouse.suite_report.published import Figure, beside, differing_terms, unstated_terms

NIGHT, SOURCE, METRIC = "2026-03-01", "seed4_rocm_deepdive_blog", "output_throughput_tok_per_s"
SHAPES = {"chat": Shape(), "slow": Shape(tokens=16)}
SCENARIO = suite(SHAPES).expand()[0]
OURS: dict[str, Any] = {
    "model_source": "hf:meta-llama/Llama-3.1-70B-Instruct@abc",
    "precision": "fp16",
    "gpus": ["AMD Instinct MI300X VF"],
    "gpu_count": 1,
    "isl": 128,
    "osl": 200,
    "concurrency_asked": 64,
    METRIC: 2000.0,
}


def _told(**stated: str) -> dict[str, Any]:
    """What stands beside 2,000 tok/s for a figure of 1,000 tok/s whose source states only these terms."""
    blank: dict[str, Any] = dict.fromkeys(field.name for field in fields(Published))
    required = {"source": SOURCE, "source_date": "undated", "url_or_title": "a post", "metric": "batch_throughput"}
    row = Published(**blank | required | {"value": "1000", "unit": "tok/s"} | stated)
    figure, measured = Figure(row, 1000.0, "unchecked"), Measured("accepted", (OURS,))
    different = tuple(differing_terms(figure, SCENARIO, measured))
    unstated = unstated_terms(figure, SCENARIO, measured)
    return beside(figure, Value(2000.0, 1900.0, 2100.0), different, measured, 1.0, unstated)


def test_a_figure_without_any_terms_is_shown_and_has_no_ratio() -> None:
    told = _told()

    assert (told["published"], told["ratio"], told["ratio_low"]) == ("1000 tok/s", None, None)
    assert told["terms"].startswith("not compared; the source states no terms; not stated there: model, precision, GPU")


def test_a_figure_that_states_some_terms_has_a_ratio_and_names_the_others() -> None:
    told = _told(gpu="AMD MI300X", gpu_count="1", model="Llama 3.1 70B", precision="FP16")

    assert told["ratio"] == pytest.approx(2.0)
    assert told["terms"] == "equal as far as stated; not stated there: isl, osl, load"


def test_a_name_that_fits_no_figure_or_several_is_a_sentence_in_its_row_and_the_report_is_whole(
    tmp_path: Path,
) -> None:
    night = write_night(tmp_path, NIGHT, SHAPES)
    for run in night.runs:
        write_run(tmp_path, night, run, SHAPES[run.scenario.name])
    load_night(tmp_path, NIGHT)
    figures = {"chat": {"gpu": "MI9000"}, "slow": {"gpu": "AMD MI300X"}}
    tables = (
        ReportTable(title="Wrong", published="batch_throughput", figures=figures),
        ReportTable(title="Peak", kind="peaks", published="batch_throughput", figures={"tiny": figures["chat"]}),
        ReportTable(title="Right"),
    )
    asked = suite(SHAPES).model_copy(update={"report": Report(sources=(SOURCE,), tables=tables)})

    wrong, peak, right = build_report(tmp_path, asked).tables

    said = "published figures of batch_throughput have"
    assert [row["terms"] for row in wrong.rows] == [
        f"report: 0 {said} {{'gpu': 'MI9000'}}: name exactly one",
        f"report: 2 {said} {{'gpu': 'AMD MI300X'}}: name exactly one",
    ]
    assert [(row["published"], row["ratio"]) for row in wrong.rows] == [(None, None)] * 2
    assert "MI9000" in peak.rows[0]["terms"]
    assert all(row[METRIC] for table in (wrong, right) for row in table.rows)
