"""What a suite's own file expects: refused where it is wrong, before anything is rented, else judged by the load."""

import json
from pathlib import Path
from typing import Any

import pytest

from bench.errors import SuiteError
from bench.record import NightRecord
from bench.suite.expectations import parse_expectations
from infra.loadgen.suite_file import make_night
from tests.warehouse.conftest import NIGHT
from tests.warehouse.folders import Shape, write_night, write_run
from warehouse.judging.suite_expectations import require_expectations
from warehouse.lake.query import run_sql
from warehouse.load import load_night
from warehouse.report.page import write_report

FILE = "expectations.json"
BETWEEN = "expect_column_values_to_be_between"


def _suite(name: str = "requests", **one: Any) -> str:
    expectation = {"type": BETWEEN, "kwargs": {"column": "ttft_ms", "max_value": 1}} | one
    return json.dumps({"name": name, "expectations": [expectation]}, indent=1)


def _toml(file: str) -> str:
    return Path("suites/local.toml").read_text().replace("\n[quality]\n", f'\n[quality]\nexpectations = "{file}"\n')


def _night(folder: Path, text: str) -> NightRecord:
    """A night of a suite on this computer that names the file with this text."""
    (folder / FILE).write_text(text)
    (folder / "night.toml").write_text(_toml(FILE))
    return make_night(folder / "night.toml", "local", poc=True, is_draft=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"name": "requests",\n "expectations": [}', rf"{FILE}:2: not JSON: Expecting value in column 19"),
        ('{"expectations": []}', rf"{FILE}: name: Field required; it must hold a suite of great-expectations"),
        (_suite(severity="bad"), rf"{FILE}: expectations\.0\.severity: Input should be 'critical'"),
        (_suite("request"), rf"{FILE}: name: 'request' is not a table or view; did you mean 'requests'\?"),
        (_suite(type=f"{BETWEEN}x"), rf"{FILE}: requests: expectations\.0: type: .*; did you mean '{BETWEEN}'\?"),
        (_suite(type="unexpected_rows_expectation"), "type: unexpected_rows_expectation needs a database"),
        (_suite(kwargs={"column": "ttft", "max_value": 1}), "requests has no column 'ttft'; did you mean 'ttft_ms'"),
        (_suite(kwargs={"column": "ttft_ms", "most": 1}), "kwargs: .*most extra fields not permitted"),
        (
            _suite(type="expect_column_values_to_be_in_set",
                   kwargs={"column": "run_id", "value_set": {"$PARAMETER": "measurement__run_id"}}),
            r"\$PARAMETER: 'measurement__run_id' is neither night__started_at nor <table>__<column>",
        ),
    ],
)  # fmt: skip
def test_a_file_that_is_wrong_is_refused_with_its_line_or_key(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SuiteError, match=message):
        require_expectations(_night(tmp_path, text))


def test_a_file_that_does_not_exist_is_refused_with_the_suites_line(tmp_path: Path) -> None:
    (tmp_path / "night.toml").write_text(_toml("none.json"))

    with pytest.raises(SuiteError, match=r"night\.toml:\d+: quality\.expectations: .*none\.json"):
        make_night(tmp_path / "night.toml", "local", poc=True, is_draft=True)


def test_a_suite_that_extends_another_has_its_expectations_too(tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    _night(tmp_path / "base", _suite())
    (tmp_path / "own.toml").write_text('extends = "base/night.toml"\nname = "own"\n')

    night = make_night(tmp_path / "own.toml", "local", poc=True, is_draft=True)

    require_expectations(night)
    assert night.expectations == parse_expectations(_suite(), FILE)


def test_what_does_not_hold_rejects_its_runs_and_is_a_row_a_warning_and_on_the_page(tmp_path: Path) -> None:
    costs = {"type": "expect_column_sum_to_be_between", "kwargs": {"column": "usd", "max_value": 0}, "severity": "info"}
    text = json.dumps([json.loads(_suite(notes="nobody waits")), json.loads(_suite("leases", **costs))])
    night = write_night(tmp_path, NIGHT, {"chat": Shape()})
    planned = night.model_copy(update={"expectations": parse_expectations(text, FILE)})
    (tmp_path / "runs" / NIGHT / "night.json").write_text(planned.model_dump_json())
    write_run(tmp_path, night, night.runs[0], Shape())

    summary = load_night(tmp_path, NIGHT)

    about = f'requests.ttft_ms: {BETWEEN} {{"max_value": 1}} does not hold: of 400 values 400 are unexpected: run_id = '
    assert summary.verdicts == {"rejected": 1}
    assert [one for one in summary.warnings if one.startswith(about) and one.endswith("(nobody waits)")]
    [finding] = run_sql(tmp_path, "SELECT status, message FROM findings WHERE code = 'expectation_unmet'").rows
    assert finding[0] == "FAIL"
    assert finding[1].startswith(about)
    rows = "SELECT origin, table_name, status, unexpected_count FROM expectations WHERE status <> 'PASS' ORDER BY ALL"
    assert run_sql(tmp_path, rows).rows == (("suite", "leases", "WARN", None), ("suite", "requests", "FAIL", 400))
    page = write_report(tmp_path, NIGHT)
    assert "Expectations that do not hold" in page.read_text("utf-8")
    assert "400 unexpected values found" in (page.parent / "data-docs" / page.name).read_text("utf-8")
