"""The suite of the MI325X study in its local shape, with the truth server in the engine's place."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bench.record import PlannedRun
from infra.storage import store
from tests.flows.conftest import NightFixture, run_nightly

pytestmark = [pytest.mark.matrix, pytest.mark.timeout(600), pytest.mark.usefixtures("nights_without_prefect")]
TTFT_MS, ITL_MS = 20, 2  # of the truth server, unless it is told others
STUDY = Path(__file__).parents[2] / "suites" / "mi325x-study.toml"


def test_every_phase_of_every_model_is_measured_on_this_computer(house: NightFixture) -> None:
    night = run_nightly(house, suite=STUDY).night

    sql = (
        f"SELECT scenario, model, model_source, model_sha256, outcome, reason FROM measurements WHERE night = '{night}'"
    )
    found = json.loads(house.call("sql", sql, "--json").stdout)
    assert [row for row in found if row["outcome"] != "measured"] == []
    planned = store.read_night(house.data, night).runs
    assert {run.scenario.name for run in planned} <= {row["scenario"] for row in found}
    models = ["llama-3.1-405b", "deepseek-v3.2", "kimi-k2.5", "qwen3-vl-235b"]
    assert {row["model"]: row["model_source"] for row in found} == {
        f"tiny-{name}": f"generated:tiny?seed={seed}" for seed, name in enumerate(models)
    }
    assert (
        len({(row["model"], row["model_sha256"]) for row in found}) == len({row["model_sha256"] for row in found}) == 4
    )
    assert Counter(row["scenario"].startswith("sweep") for row in found)[True] >= 2  # the sweep went on
    assert house.leftovers() == []
    _require_tables(json.loads(house.call("report", night, "--suite", str(STUDY), "--format", "json").stdout), planned)


def _require_tables(report: dict[str, Any], planned: Sequence[PlannedRun]) -> None:
    """Each table of the report has a row for each row of the study, and counts what the truth server was sent."""
    tables = {table["title"]: table["rows"] for table in report["tables"]}
    assert [title for title, rows in tables.items() if not rows] == []
    counts = {title: len(tables[title]) for title in ("Scaling", "Stress", "Saturation", "Quick", "AITER on over off")}
    assert counts == {
        "Scaling": 3 * 8,
        "Stress": 4 * 3 + 2 * 4,
        "Saturation": 3 * 6,
        "Quick": 2 * (6 + 4),
        "AITER on over off": 7 + 1,
    }
    works = [run.scenario.workload for run in planned]
    (osl,) = {run.scenario.workload.osl for run in planned if run.scenario.name.startswith("baseline")}
    fastest_tok_per_s = 1000 * osl / (TTFT_MS + (osl - 1) * ITL_MS)
    # A busy computer makes times longer; of a client without CPU the first token is late, and the others seem quick.
    for row in tables["Baseline, one user"]:
        assert row["ttft_p50_ms"] is None or row["ttft_p50_ms"] > 0.9 * TTFT_MS
        assert (
            row["output_throughput_tok_per_s"] is None or row["output_throughput_tok_per_s"] < 1.1 * fastest_tok_per_s
        )
    totals = {row["count"]: row["value"] for row in tables["Totals"] if row["model"] == "all"}
    assert (totals["runs"], totals["success_pct"]) == (len(works), 100)
    assert totals["requests"] == sum(work.request_count for work in works)
    assert totals["output tokens"] == sum(work.request_count * work.osl for work in works)
    assert totals["prompt tokens"] == sum(work.request_count * work.isl for work in works)
    # A miniature is compared with nothing that was published but the success rate.
    compared = {title for title, rows in tables.items() for row in rows if row.get("ratio") and row.get("published")}
    assert compared <= {"Totals"}
