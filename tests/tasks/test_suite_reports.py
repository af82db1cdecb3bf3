"""The tables that a suite declares, written and shown at the end of its night."""

from pathlib import Path

import pytest

from flows.show.night_end import show_night
from tasks.loading import report_suite
from tests.flows.without_prefect import without_prefect
from tests.warehouse.folders import Shape, suite, write_night, write_run
from warehouse.load import load_night

NIGHT = "2026-03-01"
SHAPES = {"chat": Shape()}
LOCAL = (Path(__file__).parents[2] / "suites" / "local.toml").read_text()
NAMED = 'name = "local"'
DECLARED = LOCAL + '\n[report]\ntitle = "Declared"\n'


def test_a_night_ends_with_the_report_of_its_suite_and_prints_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NIGHTBENCH_DATA", str(tmp_path))
    night = write_night(tmp_path, NIGHT, SHAPES)
    for run in night.runs:
        write_run(tmp_path, night, run, SHAPES["chat"])
    load_night(tmp_path, NIGHT)
    path, name = tmp_path / "suite.toml", suite(SHAPES).name
    page = tmp_path / "reports" / NIGHT / f"{name}.html"

    def end(text: str) -> str:
        path.write_text(text)
        with without_prefect():
            report_suite.fn(NIGHT, path)
        show_night(tmp_path, NIGHT)
        return "".join(capsys.readouterr().out.split())

    for text in (DECLARED.replace(NAMED, 'name = "other"', 1), LOCAL.replace(NAMED, f'name = "{name}"', 1)):
        assert "reportofthesuite" not in end(text)  # another suite, then its suite without tables
        assert not page.parent.exists()
    assert f"reportofthesuite:{page}" in end(DECLARED.replace(NAMED, f'name = "{name}"', 1))
    assert "<h1>Declared</h1>" in page.read_text()
