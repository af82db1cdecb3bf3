"""A replay whose client stood still for a moment is rejected, and the reason says by how much it was late."""

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from tests.flows.conftest import NightFixture, run_nightly
from warehouse.lake.query import run_sql

pytestmark = [pytest.mark.matrix, pytest.mark.usefixtures("calibrated", "nights_without_prefect")]
SCENARIO = """
[[scenarios]]
name = "late"
isl = 64
osl = 4
arrivals = "trace"
trace = "steady.csv"
trace_format = "azure"
request_count = 150
"""
STOOD_STILL_S = 0.4


def stop_the_client(data: Path) -> None:
    """Stop the meter's processes for a moment while it sends."""
    until = time.monotonic() + 600
    while time.monotonic() < until and not list(data.glob("runs/*/*/.*/load/progress.json")):
        time.sleep(0.01)
    (pid_file,) = data.rglob("driver.pid")
    time.sleep(0.5)
    session = int(pid_file.read_text().split()[0])
    os.killpg(session, signal.SIGSTOP)
    time.sleep(STOOD_STILL_S)
    os.killpg(session, signal.SIGCONT)


def test_a_client_that_stood_still_replayed_its_trace_too_late(house: NightFixture) -> None:
    rows = (f"2023-11-16 18:15:{at / 50:010.7f},{20 + at % 40},4" for at in range(150))
    (house.suite.parent / "steady.csv").write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n" + "\n".join(rows))
    house.suite.write_text(house.suite.read_text().partition("[[scenarios]]")[0] + SCENARIO)
    disturbing = threading.Thread(target=stop_the_client, args=(house.data,))
    disturbing.start()

    run_nightly(house)

    disturbing.join()
    sql = "SELECT m.verdict, f.observed, f.message FROM findings f JOIN measurements m USING (run_id)"
    (found,) = run_sql(house.data, f"{sql} WHERE f.code = 'late_replay'").dicts()
    assert found["observed"] > STOOD_STILL_S * 500
    assert "after their recorded time" in found["message"]
    assert found["verdict"] in {"rejected", "suspect"}  # beside other processes it is a doubt
