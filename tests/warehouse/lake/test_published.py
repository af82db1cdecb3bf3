"""The published figures as a table, and ours beside them."""

from pathlib import Path

import pytest

from warehouse.lake.lake import write_rows
from warehouse.lake.query import run_sql
from warehouse.rows.row_ids import blank_row
from warehouse.rows.run_folder import RunId
from warehouse.schema.row import Row
from warehouse.suite_report.published_rows import published_csv
from warehouse.views import PUBLISHED_FILE

NIGHT = "2026-03-01"
SAME: Row = {
    "catalog_model": "Llama-3.3-70B",
    "catalog_gpu": "MI300X",
    "gpu_count": 1,
    "precision": "fp8",
    "isl": 128,
    "osl": 2048,
    "concurrency_asked": 1,
}


def beside(folder: Path, **changes: object) -> list[Row]:
    """What stands beside two repeats of 30 and 36 tok/s, of the terms of the first published row or of others."""
    rows = [
        blank_row(RunId(NIGHT, "a" * 16, repeat))
        | {"outcome": "measured", "verdict": "accepted", "output_throughput_tok_per_s": rate, **SAME, **changes}
        for repeat, rate in enumerate((30.0, 36.0))
    ]
    write_rows(folder / "lake", "measurements", NIGHT, rows)
    return run_sql(folder, "FROM beside_published").dicts()


def test_the_table_is_the_one_that_is_written_from_the_catalogue_and_the_audit() -> None:
    assert PUBLISHED_FILE.read_text() == published_csv(), "run `python -m warehouse.suite_report.published_rows`"


def test_a_figure_of_the_same_terms_has_our_ratio_to_it(tmp_path: Path) -> None:
    (found,) = beside(tmp_path)

    assert (found["published"], found["published_verdict"], found["terms"]) == ("33.1", "suspect", [])
    assert (found["ours"], found["repeats"]) == (33.0, 2)
    assert found["ratio"] == pytest.approx(33.0 / 33.1)


@pytest.mark.parametrize(
    ("change", "term"),
    [
        ({"catalog_gpu": "H200"}, "GPU: MI300X published, H200 here"),
        ({"catalog_gpu": None}, "GPU: MI300X published, none here"),
        ({"gpu_count": 2}, "GPU count: 1 published, 2 here"),
        ({"precision": "bf16"}, "precision: fp8 published, bf16 here"),
    ],
)
def test_other_terms_are_named_and_have_no_ratio(tmp_path: Path, change: Row, term: str) -> None:
    (found,) = beside(tmp_path, **change)

    assert (found["ratio"], found["terms"]) == (None, [term])


@pytest.mark.parametrize("change", [{"catalog_model": "Llama-3.1-8B"}, {"osl": 100}, {"concurrency_asked": 64}])
def test_a_run_of_another_workload_stands_beside_nothing(tmp_path: Path, change: Row) -> None:
    assert beside(tmp_path, **change) == []
