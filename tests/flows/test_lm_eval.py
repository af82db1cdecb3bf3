"""A night whose server is asked tasks after its loads: the real engine, the real harness, questions of our own."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.storage.store import is_whole
from tests.flows.conftest import NightFixture
from tests.flows.test_real_engine import engine

__all__ = ["engine"]
pytestmark = [pytest.mark.e2e, pytest.mark.prefect, pytest.mark.timeout(1500)]
ROOT = Path(__file__).parents[2]
TASKS = ROOT / "tests" / "data" / "lm-eval" / "tasks"
ASKED = f"""
[quality.lm_eval]
tasks = ["nightbench_colours", "gsm8k"]
folder = "{TASKS}"
limit = 5
timeout_s = 600

[[scenarios]]
name = "single-stream"
"""


@pytest.fixture
def asking(house: NightFixture, engine: str) -> Iterator[NightFixture]:
    """A night of one short scenario on a host without anybody's data sets."""
    house.environment["NIGHTBENCH_VLLM_EXECUTABLE"] = engine
    house.environment["HF_HOME"] = str(house.data / "hf")
    text = (ROOT / "suites" / "local.toml").read_text()
    whole, head = text, '[[scenarios]]\nname = "single-stream"\n'
    assert head in whole
    house.suite.write_text(text.replace(head, ASKED.lstrip("\n"), 1))
    yield house
    assert house.leftovers() == []


def rows(house: NightFixture, sql: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(house.cli("sql", sql, "--json").stdout)
    return found


def test_a_server_is_asked_after_its_loads_and_what_has_no_data_is_a_reason(asking: NightFixture) -> None:
    done = asking.cli("run", str(asking.suite), "--poc")

    assert done.returncode == 0, done.stderr
    acc, norm, gsm8k = rows(asking, "SELECT * FROM quality_scores ORDER BY task DESC, metric")
    assert [acc["metric"], norm["metric"]] == ["acc", "acc_norm"]
    for score in (acc, norm):
        assert score["value"] in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
        assert (score["outcome"], score["sample_count"], score["sample_total"]) == ("measured", 5, 6)
        assert (score["task_version"], score["harness_version"]) == ("1.0", "0.4.13")
    assert (gsm8k["outcome"], gsm8k["value"]) == ("not-run", None)
    assert "the data of gsm8k is not on this host" in str(gsm8k["reason"])
    (measured,) = rows(asking, "SELECT * FROM measurements")
    assert measured["outcome"] == "measured"
    assert measured["quality_id"] == acc["quality_id"] is not None
    assert str(measured["ended_at"]) < str(acc["started_at"])
    (folder,) = asking.data.glob("runs/*/lm-eval-*/0")
    assert is_whole(folder)
    assert {"nightbench_colours.json", "nightbench_colours.log", "gsm8k.log"} <= {
        path.name for path in folder.iterdir()
    }
    (stage,) = rows(asking, "SELECT stage FROM stages WHERE stage = 'lm-eval'")
    assert stage
