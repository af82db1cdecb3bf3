"""Images sent to the real vLLM on CPU, which has a small generated model that reads them."""

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
[[scenarios]]
name = "distinct"
isl = 16
osl = 8
concurrency = 2
request_count = 12
warmup_count = 2
prompts = { kind = "images", form = "chat", width = 64, height = 48, images = 2 }
[[scenarios]]
name = "seen"
isl = 16
osl = 8
concurrency = 2
request_count = 12
repeats = 2
prompts = { kind = "images", form = "chat", width = 64, height = 48, images = 2, seed = 1 }
"""


def test_the_real_engine_reads_every_image(
    house: NightFixture, quick_engine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NIGHTBENCH_VLLM_EXECUTABLE", str(quick_engine))
    write_scenarios(house.suite, SCENARIOS, "--no-enable-prefix-caching", model="tinyvision")

    run_nightly(house)

    wanted = "scenario, failed, images_sent, server_images_read AS read, image_cache_hit_share AS hits"
    found = run_sql(house.data, f"SELECT {wanted} FROM measurements ORDER BY scenario, hits").rows
    assert [tuple(row) for row in found] == [
        ("distinct", 0, 28, 28, 0.0),
        ("seen", 0, 24, 24, 0.0),
        ("seen", 0, 24, 24, 1.0),
    ]
    doubts = run_sql(
        house.data,
        "SELECT code, status, scenario FROM findings JOIN measurements USING (night, run_id)"
        " WHERE code LIKE 'images_%' AND status <> 'PASS'",
    ).rows
    assert [tuple(row) for row in doubts] == [("images_cached", "FAIL", "seen")]
