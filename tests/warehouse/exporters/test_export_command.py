import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bench.errors import UsageError
from flows.cli import app
from tests.warehouse.conftest import NIGHT
from warehouse.load import LoadSummary


@pytest.fixture
def data(loaded: tuple[Path, LoadSummary], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("NIGHTBENCH_DATA", str(loaded[0]))
    return str(loaded[0])


def test_an_export_is_printed(data: str) -> None:
    found = CliRunner().invoke(app, ["--data", data, "export", "pytorch", NIGHT, "--all"])

    assert found.exit_code == 0, found.output
    assert {record["schema_version"] for record in json.loads(found.stdout)} == {"v3"}


def test_an_export_is_written_to_a_file_or_to_a_folder_of_several(data: str, tmp_path: Path) -> None:
    for name, out in (("nvidia-csv", "some/report.csv"), ("llm-d", "reports")):
        found = CliRunner().invoke(app, ["--data", data, "export", name, "--all", "--out", str(tmp_path / out)])
        assert found.exit_code == 0, found.output

    assert (tmp_path / "some/report.csv").read_text().startswith("Model,PP,TP,")
    assert len(list((tmp_path / "reports").glob("*.json"))) > 1


@pytest.mark.parametrize(("name", "out"), [("nvidia-csv", "file/report.csv"), ("llm-d", "file/reports")])
def test_a_place_that_cannot_be_written_is_wrong_usage(data: str, tmp_path: Path, name: str, out: str) -> None:
    (tmp_path / "file").touch()

    found = CliRunner().invoke(app, ["--data", data, "export", name, "--all", "--out", str(tmp_path / out)])

    assert isinstance(found.exception, UsageError)
    assert str(found.exception).startswith(f"--out {tmp_path / out} cannot be written: ")


def test_an_export_replaces_a_file_in_one_step_so_that_a_reader_has_all_of_the_one_before(
    data: str, tmp_path: Path
) -> None:
    out = tmp_path / "report.csv"
    out.write_text("before")

    with out.open() as reader:
        CliRunner().invoke(app, ["--data", data, "export", "nvidia-csv", "--all", "--out", str(out)])
        assert reader.read() == "before"

    assert out.read_text().startswith("Model,PP,TP,")


def test_an_unknown_night_is_wrong_usage(data: str) -> None:
    found = CliRunner().invoke(app, ["--data", data, "export", "pytorch", "2020-01-01", "--all"])

    assert isinstance(found.exception, UsageError)
    assert NIGHT in str(found.exception)
