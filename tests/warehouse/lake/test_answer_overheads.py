"""The overhead of answers with a form: their means over those of the free twin on the same lease."""

from pathlib import Path

import pytest

from warehouse.lake.lake import write_rows
from warehouse.lake.query import run_sql
from warehouse.rows.row_ids import blank_row
from warehouse.rows.run_folder import RunId
from warehouse.schema.row import Row

NIGHT = "2026-03-01"


def _rows(scenario: str, values: tuple[float, ...], form: str | None, lease: str = "one") -> list[Row]:
    return [
        blank_row(RunId(NIGHT, f"{scenario}-{lease}", repeat))
        | {"scenario": scenario, "outcome": "measured", "verdict": "accepted", "lease_id": lease}
        | {"tpot_p50_ms": value, "is_first_after_start": False, "answer_form": form}
        for repeat, value in enumerate(values)
    ]


def test_the_ratio_is_that_of_the_geometric_means_on_one_lease(tmp_path: Path) -> None:
    rows = [
        *_rows("json", (11.0, 12.1), "json_schema"),
        *_rows("json-free", (10.0, 10.0), None),
        *_rows("json-free", (99.0, 99.0), None, lease="other"),
        *_rows("chat", (5.0, 5.0), None),
    ]
    write_rows(tmp_path / "lake", "measurements", NIGHT, rows)

    (found,) = run_sql(tmp_path, "FROM answer_overheads").dicts()

    assert (found["scenario"], found["answer_form"], found["metric"]) == ("json", "json_schema", "tpot_p50_ms")
    assert found["ratio"] == pytest.approx((11.0 * 12.1) ** 0.5 / 10.0)
    assert (found["repeats"], found["free_repeats"]) == (2, 2)


@pytest.mark.parametrize("twin", ["json-free@a", "json@a-free"])  # the second: of nights before the name changed
def test_a_variant_is_held_against_its_own_twin(tmp_path: Path, twin: str) -> None:
    rows = [
        *_rows("json@a", (12.0, 12.0), "json_schema"),
        *_rows(twin, (10.0, 10.0), None),
        *_rows("json-free@b", (99.0, 99.0), None),
    ]
    write_rows(tmp_path / "lake", "measurements", NIGHT, rows)

    (found,) = run_sql(tmp_path, "FROM answer_overheads").dicts()

    assert found["ratio"] == pytest.approx(1.2)
