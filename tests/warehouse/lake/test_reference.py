from pathlib import Path

from warehouse.lake.reference import PAGE, reference_markdown
from warehouse.schema.columns import TABLES
from warehouse.views import QUESTIONS


def test_the_reference_of_the_warehouse_is_not_stale(tmp_path: Path) -> None:
    assert PAGE.read_text(encoding="utf-8") == reference_markdown(tmp_path), "run python -m warehouse.lake.reference"


def test_it_has_every_table_and_every_view() -> None:
    titles = [line.removeprefix("### ") for line in PAGE.read_text().split("\n") if line.startswith("### ")]

    assert titles == [*TABLES, *QUESTIONS]
