"""A night driven by vLLM's Rust client, where there is one: NIGHTBENCH_VLLM_RS, or on PATH."""

import os
import shutil

import pytest

from tests.flows.conftest import NightFixture, run_nightly
from warehouse.lake.query import run_sql

CLIENT = os.environ.get("NIGHTBENCH_VLLM_RS") or shutil.which("vllm-rs")
pytestmark = [pytest.mark.prefect, pytest.mark.usefixtures("prefect_api")]


def write_suite(house: NightFixture) -> None:
    text = house.write_suite().read_text()
    house.suite.write_text(text.replace("concurrency =", 'driver = "vllm-rs-bench"\nconcurrency ='))


@pytest.mark.skipif(CLIENT is None, reason="there is no vllm-rs here")
def test_the_rust_client_drives_a_night_and_what_it_lacks_is_null(house: NightFixture) -> None:
    write_suite(house)

    run_nightly(house)

    asked = "SELECT driver, completed, kernel_stamp_share, client_lag_p99_ms, ttft_mean_ms > 15 FROM measurements"
    rows = sorted(tuple(row) for row in run_sql(house.data, asked).rows)
    assert rows == [("vllm-rs-bench", 12, None, None, True), ("vllm-rs-bench", 24, None, None, True)]


def test_without_the_rust_client_its_runs_fail_and_say_where_to_get_it(
    house: NightFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_suite(house)
    monkeypatch.setenv("NIGHTBENCH_VLLM_RS", str(house.data / "nowhere"))

    summary = run_nightly(house)

    reasons = run_sql(house.data, "SELECT DISTINCT stage, reason FROM failures").dicts()
    assert summary.verdicts == {"failed": 2}
    assert [row["stage"] for row in reasons] == ["load-drive"]
    assert str(reasons[0]["reason"]).endswith("nowhere is missing or not executable")
