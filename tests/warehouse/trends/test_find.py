"""What changed in the small histories, in which every change is known."""

import json
import math
import re
from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bench.errors import UsageError
from flows.cli import app
from tests.data.history import make
from tests.warehouse.test_histories import HISTORIES, PLAIN, WIDE
from warehouse.histories import import_history
from warehouse.lake.query import run_sql
from warehouse.trends.find import Trends, find_trends
from warehouse.trends.history_series import history_series

FIELDS = ("series", "metric", "last_good", "first_bad", "effect_pct", "ci_lo", "ci_hi", "state", "cause", "event_id")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the three small histories."""
    folder = tmp_path_factory.mktemp("histories")
    for name, options in (("long.csv", PLAIN), ("data.js", PLAIN), ("wide.csv", WIDE)):
        import_history(folder, HISTORIES / name, options)
    return folder


@pytest.fixture(scope="module")
def found(data: Path) -> Trends:
    return find_trends(data)


def test_a_new_driver_is_one_event_with_its_date_and_its_cause(found: Trends) -> None:
    rows = [row for row in found.rows() if row["cause"] == "driver"]

    assert {(row["series"], row["last_good"], row["first_bad"]) for row in rows} == {
        (f"Base_A/{name}", make.night(19).isoformat(), make.night(20).isoformat()) for name in ("text", "memory")
    }
    assert len({row["event_id"] for row in rows}) == 1
    effects = {row["series"]: row["effect_pct"] for row in rows}
    assert effects == {"Base_A/text": pytest.approx(15, abs=1), "Base_A/memory": pytest.approx(-20, abs=1)}
    assert {row["direction"] for row in rows} == {"better", "worse"}


def test_a_step_at_which_only_the_host_differs_is_the_hosts(found: Trends) -> None:
    rows = [row for row in found.rows() if row["series"].startswith("Base_B/")]

    assert {(row["state"], row["cause"], row["first_bad"]) for row in rows} == {
        ("host", "host", make.night(30).isoformat())
    }
    assert len(rows) == 3
    assert len({row["event_id"] for row in rows}) == 1


def test_a_commit_that_halves_one_model_is_the_engines(found: Trends) -> None:
    rows = [row for row in found.rows() if row["cause"] == "engine"]

    assert {row["series"].split()[0] for row in rows} == {"model-a"}
    assert len(rows) == 6
    assert {(row["state"], row["first_bad"]) for row in rows} == {("confirmed", make.night(15).isoformat())}
    assert len({row["event_id"] for row in rows}) == 1
    throughput = next(row for row in rows if row["metric"] == "throughput")
    assert throughput["effect_pct"] == pytest.approx(-50, abs=1)
    assert throughput["ci_lo"] < -50 < throughput["ci_hi"] < 0


def test_one_slow_night_of_all_is_a_spike_that_is_over_the_next_night(found: Trends) -> None:
    rows = [row for row in found.rows() if row["kind"] == "excursion"]

    slow = make.night(make.SLOW_AT).isoformat()
    assert {(row["state"], row["cause"], row["first_bad"], row["until"]) for row in rows} == {
        ("suspect", "spike", slow, slow)
    }
    assert len(rows) == 12


def test_nothing_else_changed(found: Trends) -> None:
    assert Counter(row["cause"] for row in found.rows()) == {"driver": 2, "host": 3, "engine": 6, "spike": 12}


def test_a_pattern_chooses_series(data: Path) -> None:
    assert {row["series"] for row in find_trends(data, "base_a.*memory").rows()} == {"Base_A/memory"}


@pytest.mark.parametrize(("pattern", "message"), [("nothing", "no series matches 'nothing'"), ("(", "regular expr")])
def test_a_pattern_that_fits_nothing_is_refused(data: Path, pattern: str, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        find_trends(data, pattern)


def test_the_command_prints_one_object_per_change(data: Path) -> None:
    said = CliRunner().invoke(app, ["--data", str(data), "trends", "Base_A", "--json"])

    rows = json.loads(said.stdout)
    assert len(rows) == 2
    assert tuple(rows[0])[: len(FIELDS)] == FIELDS


def test_the_command_counts_series_and_events(data: Path) -> None:
    said = CliRunner().invoke(app, ["--data", str(data), "trends", "Base_"])

    assert said.stdout.splitlines()[-1] == (
        "6 series, 5 changes in 2 events; 0 series have fewer than 10 nights and were not judged"
    )


def test_the_spread_of_a_history_is_a_share_of_its_value(tmp_path: Path) -> None:
    file = tmp_path / "long.csv"
    rows = ["2026-03-01T00:00:00Z,a,40,2,", "2026-03-02T00:00:00Z,a,100,,1", "2026-03-02T00:00:00Z,a,110,,2"]
    file.write_text("\n".join(["timestamp,series,value,stddev,repeat", *rows, ""]))
    import_history(tmp_path / "data", file, PLAIN)

    (series,) = history_series(tmp_path / "data")

    assert [point.spread for point in series.points] == pytest.approx([0.05, math.log(1.1) / math.sqrt(2)])


def test_series_are_the_same_in_batches_of_any_size(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = list(map(repr, history_series(data)))  # NaN equals itself in text
    monkeypatch.setattr("warehouse.trends.history_series.BATCH_ROWS", 30)

    assert list(map(repr, history_series(data))) == whole
    assert len(whole) > 1


def test_only_the_series_of_an_import_are_read(data: Path) -> None:
    nights = [night for (night,) in run_sql(data, "SELECT DISTINCT night FROM history_points").rows]
    of_each = [{series.key for series in history_series(data, night)} for night in nights]

    assert all(of_each)
    assert sum(map(len, of_each)) == len(set().union(*of_each)) == len(list(history_series(data)))
