"""The plan of a suite over several models and machines."""

import json
from pathlib import Path

import pytest

from flows.show.plan import show_plan
from infra.leases.forecast import forecast_night
from infra.loadgen.suite_file import make_night
from infra.settings import Settings
from tests.catalog.test_engine_check import STUDY

BUDGET = "budget_usd = 40.0\n"


def _plan(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    *,
    block: int = 1,
    as_json: bool = False,
    apply_rules: bool = False,
) -> tuple[str, tuple[str, ...]]:
    suite = folder / "study.toml"
    suite.write_text(BUDGET + STUDY.format(block=block, gpus=8, kind="gpu-mi325x8-2048gb", gpu="MI325X", count=8))
    night = make_night(suite, "digitalocean", poc=False, is_draft=True, apply_rules=apply_rules)
    expected = forecast_night(Settings(), night, None)
    show_plan(night, expected, (), as_json=as_json)
    return capsys.readouterr().out, expected.doubts


def test_a_plan_shows_each_machine_their_sum_and_whether_each_model_fits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told, doubts = _plan(tmp_path, capsys)

    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in told.splitlines() if line.startswith("│")]
    machines = {row[0]: row for row in rows if len(row) == 8 and row[0] in ("eight", "other")}
    assert "study on digitalocean: 4 runs, 4 server starts" in told
    assert [machine[1:4] for machine in machines.values()] == [
        ["gpu-mi300x8-1536gb", "2", "2"], ["gpu-mi325x8-2048gb", "2", "2"],
    ]  # fmt: skip
    each = [float(machine[7]) for machine in machines.values()]
    (total,) = [line for line in told.splitlines() if line.startswith("total of 2 machines")]
    assert total.endswith(f"{sum(each):.2f} USD")
    minutes = [float(machine[4]) for machine in machines.values()]
    assert total.startswith(f"total of 2 machines: {max(minutes):.0f} billed minutes")
    fits = [row for row in rows if row[0] in ("eight", "other") and row[-1] == "True"]
    assert [row[:2] for row in fits] == [
        [machine, model] for machine in ("eight", "other") for model in ("llama-405b", "deepseek-v3")
    ]
    expected = f"budget_usd = 40.00 would end the night early: 2 machines are expected to cost {sum(each):.2f} USD"
    assert expected in doubts


def test_a_plan_in_json_has_each_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = json.loads(_plan(tmp_path, capsys, as_json=True)[0])

    assert [(one["machine"], one["runs"], one["usd_per_hour"]) for one in plan["machines"]] == [
        ("eight", 2, 20.72), ("other", 2, 30.40),
    ]  # fmt: skip
    assert plan["usd"] == pytest.approx(sum(one["estimates"]["cold"]["usd"] for one in plan["machines"]), abs=0.01)
    assert [[fit["model"], fit["fits"]] for fit in plan["machines"][0]["fits"]] == [
        ["llama-405b", True], ["deepseek-v3", True],
    ]  # fmt: skip


def test_a_plan_says_what_apply_rules_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refused = "the night would be refused: DeepSeek-V3/R1 with --block-size 16: MLA with AITER needs --block-size 1"
    assert any(refused in doubt for doubt in _plan(tmp_path, capsys, block=16)[1])

    told, doubts = _plan(tmp_path, capsys, block=16, apply_rules=True)

    changed = "deepseek-v3 on eight: --block-size 16 becomes --block-size 1 (mla_block_size)"
    assert f"changed by --apply-rules: {changed}" in told
    assert not [doubt for doubt in doubts if "refused" in doubt]
