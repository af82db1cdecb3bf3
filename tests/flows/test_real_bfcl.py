"""Questions of BFCL to the real vLLM on CPU, whose small generated model calls no tool rightly."""

from pathlib import Path

import pytest

from tests.flows.conftest import NightFixture, run_nightly
from tests.flows.real_engine import write_scenarios
from warehouse.lake.query import run_sql

pytestmark = [
    pytest.mark.matrix,
    pytest.mark.timeout(1500),
    pytest.mark.usefixtures("calibrated", "nights_without_prefect"),
]
SCENARIOS = """
[quality.lm_eval]
tasks = ["bfcl_simple_python", "bfcl_irrelevance", "bfcl_live_simple"]
limit = 2

[[scenarios]]
name = "one"
isl = 16
osl = 8
concurrency = 1
request_count = 10
"""


def test_bfcl_scores_the_tool_calls_of_the_real_engine(
    house: NightFixture, quick_engine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NIGHTBENCH_VLLM_EXECUTABLE", str(quick_engine))
    write_scenarios(house.suite, SCENARIOS, "--enable-auto-tool-choice", "--tool-call-parser", "hermes")

    run_nightly(house)

    found = run_sql(house.data, "SELECT task, metric, filter, value, sample_count FROM quality_scores ORDER BY 1").rows
    assert [tuple(row) for row in found] == [
        ("bfcl_irrelevance", "accuracy", "tools", 1.0, 2),  # it calls no tool, which is right here
        ("bfcl_live_simple", "accuracy", "tools", 0.0, 2),
        ("bfcl_simple_python", "accuracy", "tools", 0.0, 2),
    ]
