"""Cores that changed their speed between the repeats of a night are the cause of a wide interval, and doubt no run."""

from pathlib import Path

import pytest

from infra.storage import store
from tests.warehouse.folders import QUALITY, QUIET, Shape, Told, write_night, write_run
from warehouse.lake.query import run_sql
from warehouse.load import load_night
from warehouse.report.night.host import host_html

NIGHT = "2026-03-01"
WORK_S = (1.0e-3, 1.0e-3, 1.25e-3, 1.02e-3, None)  # the last was not measured
GAPS_MS = (5.0, 5.0, 6.25, 5.1, 5.0)  # the load was as slow as the cores
SPEEDS = 'SELECT core_work_ms, core_speed_share, core_speed_lowest_share FROM measurements ORDER BY "repeat"'
SLOW = "SELECT \"repeat\", status, message FROM findings WHERE code = 'slow_core' ORDER BY ALL"


def loaded(data: Path, half_width_max: float) -> Path:
    """A night of one scenario, whose suite asks for such an interval."""
    night = write_night(data, NIGHT, {"chat": Shape()}, repeats=len(WORK_S))
    quality = QUALITY.model_copy(update={"half_width_max": half_width_max})
    night = night.model_copy(update={"suite": night.suite.model_copy(update={"quality": quality})})
    store.write_json(store.night_file(data, NIGHT), night)
    for run, work_s, gap_ms in zip(night.runs, WORK_S, GAPS_MS, strict=True):
        slowest_s = None if work_s is None else 2 * work_s
        use = QUIET.model_copy(update={"core_work_s": work_s, "core_work_slowest_s": slowest_s})
        write_run(data, night, run, Shape(gap_ms=gap_ms), Told(host_use=use))
    load_night(data, NIGHT)
    return data


def test_slow_cores_are_columns_of_a_run_and_the_cause_of_a_wide_interval(tmp_path: Path) -> None:
    data = loaded(tmp_path, half_width_max=0.05)

    speeds = [(1.0, 1.0, 0.5), (1.0, 1.0, 0.5), (1.25, 0.8, 0.4), (1.02, 1 / 1.02, 0.5 / 1.02)]
    assert list(run_sql(data, SPEEDS).rows) == [*map(pytest.approx, speeds), (None, None, None)]

    found = list(run_sql(data, SLOW).rows)
    assert [(repeat, status) for repeat, status, _message in found] == [
        *((0, "PASS"), (1, "PASS"), (2, "WARN"), (3, "PASS"))
    ], "where it was not measured there is no finding"
    assert "1.25 times as long" in found[2][2]
    assert "the cores ran at 80% of their best speed" in found[2][2]
    messages = {message for (message,) in run_sql(data, "SELECT message FROM findings WHERE code = 'unstable'").rows}
    assert messages
    assert all("the cores ran at 80% to 100% of their best speed in these repeats" in said for said in messages)
    assert "20.0% slower cores" in host_html(data, NIGHT)


def test_slow_cores_alone_doubt_no_run(tmp_path: Path) -> None:
    data = loaded(tmp_path, half_width_max=0.9)

    assert {verdict for (verdict,) in run_sql(data, "SELECT verdict FROM measurements").rows} == {"accepted"}
    assert [(repeat, status) for repeat, status, _message in run_sql(data, SLOW).rows if status == "WARN"] == [
        (2, "WARN")
    ]
