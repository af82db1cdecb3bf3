"""Two sides of which no run of a night started: nothing is compared, and a side that was planned says why."""

from pathlib import Path

from tests.warehouse.folders import Shape, write_night
from warehouse.load import load_night
from warehouse.trends.ab import compare_variants


def test_sides_without_a_run_that_started_are_not_compared(tmp_path: Path) -> None:
    write_night(tmp_path, "2026-03-01", {"chat@a": Shape(), "chat@b": Shape()}, repeats=4)
    load_night(tmp_path, "2026-03-01")

    answer = compare_variants(tmp_path, "2026-03-01", 2, ("own", "b")).answer()

    assert answer["pairs"] == []
    assert [(one["side"], one["why"].partition(":")[0]) for one in answer["missing"]] == [("B", "4 not-run")]
