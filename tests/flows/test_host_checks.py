"""What `nightbench doctor` says of the data folder, and of the nets of each cloud that is set up."""

from pathlib import Path

import pytest

from flows.doctor.host_checks import examine
from infra.settings import Settings
from tests.warehouse.folders import whole_night

NIGHT = "2026-03-01"


def test_a_file_that_no_part_of_a_night_is_is_named_and_no_fault(tmp_path: Path) -> None:
    whole_night(tmp_path, NIGHT)
    (tmp_path / "runs" / NIGHT / "notes.txt").write_text("of a person")

    (found,) = [check for check in examine(Settings(data=tmp_path)) if check.what == "nights"]

    assert found.found == (f"1 in {tmp_path / 'runs'}; kept, and neither copied nor loaded: {NIGHT}/notes.txt")
    assert found.is_good


def test_the_nets_of_each_cloud_that_is_set_up_are_checked_and_each_names_its_own_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NIGHTBENCH_ACCEPT_RISK", raising=False)
    monkeypatch.setenv("NIGHTBENCH_DO_TOKEN", "dop_v1_one")
    monkeypatch.setenv("NIGHTBENCH_COMMAND_CLOUD", str(tmp_path))

    first, second = (check for check in examine(Settings(data=tmp_path)) if check.what == "nets")

    assert (first.is_good, second.is_good) == (False, False)
    assert (first.found.partition(":")[0], second.found.partition(":")[0]) == ("digitalocean", "command")
    assert "doctor --fix" in first.advice
    assert "COMMAND_EXPIRES" not in first.found + first.advice
    assert "NIGHTBENCH_COMMAND_EXPIRES=1" in second.advice
    assert "doctor --fix" not in second.found + second.advice


def test_without_a_cloud_the_nets_of_the_first_one_are_shown(tmp_path: Path) -> None:
    (nets,) = (check for check in examine(Settings(data=tmp_path)) if check.what == "nets")

    assert nets.is_good
    assert nets.found.startswith("digitalocean: ")
