"""What `nightbench doctor` says of the data folder."""

from pathlib import Path

from flows.host_checks import examine
from infra.settings import Settings
from tests.warehouse.folders import whole_night

NIGHT = "2026-03-01"


def test_a_file_that_no_part_of_a_night_is_is_named_and_no_fault(tmp_path: Path) -> None:
    whole_night(tmp_path, NIGHT)
    (tmp_path / "runs" / NIGHT / "notes.txt").write_text("of a person")

    (found,) = [check for check in examine(Settings(data=tmp_path)) if check.what == "nights"]

    assert found.found == (f"1 in {tmp_path / 'runs'}; kept, and neither copied nor loaded: {NIGHT}/notes.txt")
    assert found.is_good
