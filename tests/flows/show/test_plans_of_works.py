"""`nightbench plan` of the published works at full size, held against arithmetic done by hand.

The plans of the MI325X study and of the Llama 4 comparison have their arithmetic in tests/bench/cost.
"""

import json
from collections import Counter
from itertools import groupby
from typing import Any

import pytest

from tests.flows.conftest import NightFixture
from tests.flows.deployed import ROOT

GIB = 1024**3
FETCH_S_PER_BYTE = 1 / 300e6 + 1 / 2e9  # downloaded, then verified
LOAD_S_PER_BYTE, START_S = 1 / 2e9, 120.0  # read by the engine, then its profiling and graph capture
WEIGHTS_70B, KV_70B = 70.55e9, 2 * 80 * 8 * 128  # parameters; KV elements of a token: K and V, layers, heads, width
EMBEDDED_70B = 2 * 128256 * 8192  # parameters of the embeddings and of lm_head, which stay in 16 bits
WEIGHTS_405B, KV_405B = 405.85e9, 2 * 126 * 8 * 128
EMBEDDED_405B = 2 * 128256 * 16384


@pytest.fixture(autouse=True)
def accepted_risk(house: NightFixture) -> None:
    """These plans are about what a machine can do, and not about the nets under it."""
    house.environment["NIGHTBENCH_ACCEPT_RISK"] = "1"


def _plan(house: NightFixture, suite: str) -> dict[str, Any]:
    done = house.call("plan", str(ROOT / "suites" / f"{suite}.toml"), "--target", "digitalocean", "--json")
    assert done.returncode == 0, done.stderr
    plan: dict[str, Any] = json.loads(done.stdout)
    assert not [doubt for doubt in plan["doubts"] if "refused" in doubt or "end the night early" in doubt]
    return plan


def _stages(plan: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["scenario"] or one["stage"]: one for one in plan["estimates"]["cold"]["stages"]}


def _require_cost(plan: dict[str, Any], usd_per_hour: float, lease_minutes: int) -> None:
    """The night costs its minutes at the price of the machine, and its lease is longer."""
    cold = plan["estimates"]["cold"]
    billed = sum(one["billed_minutes"] for one in cold["stages"])
    assert cold["billed_minutes"] == pytest.approx(billed, abs=0.5)
    assert cold["usd"] == pytest.approx(billed / 60 * usd_per_hour, rel=0.005)
    assert billed < lease_minutes
    assert plan["usd_max"] == pytest.approx(lease_minutes / 60 * usd_per_hour)


def test_the_nine_shapes_of_the_70b_report_run_three_times_on_one_server(house: NightFixture) -> None:
    plan = _plan(house, "llama-3.3-70b-mi300x")
    runs, stages = plan["runs"], _stages(plan)

    shapes = Counter(one["scenario"] for one in runs)
    assert (len(shapes), set(shapes.values())) == (9, {3})
    assert sum(one["requests"] for one in runs) == 3 * (8 * 10 + 20)
    assert [one["scenario"] for one in runs] != sorted(one["scenario"] for one in runs)  # drawn
    assert stages["serve"]["times"] == 1
    # 16-bit weights are fetched and read; the engine makes FP8 of them.
    assert stages["model"]["minutes"] * 60 == pytest.approx(2 * WEIGHTS_70B * FETCH_S_PER_BYTE, rel=0.01)
    assert stages["serve"]["minutes"] * 60 == pytest.approx(2 * WEIGHTS_70B * LOAD_S_PER_BYTE + START_S, rel=0.01)
    # One stream makes 33.1 tokens a second in the report: ten requests after one of warm-up, three times.
    for osl in (2048, 4096):
        assert stages[f"128-in-{osl}-out"]["minutes"] * 60 == pytest.approx(3 * 11 * osl / 33.1, rel=0.02)
    # FP8 weights, and 16-bit KV of the longest request; 0.9 of 192 GiB, and 2 GiB kept.
    needed = (WEIGHTS_70B + EMBEDDED_70B + 2 * KV_70B * 22000) / GIB
    assert plan["fits"] == [
        {"model": "llama-3.3-70b", "needed_gib": round(needed), "room_gib": round(0.9 * 192 - 2), "fits": True}
    ]
    _require_cost(plan, 2.59, 360)


def test_each_level_of_the_second_method_makes_ten_times_as_many_requests(house: NightFixture) -> None:
    plan = _plan(house, "llama-3.3-70b-mi300x-concurrency")
    runs, stages = plan["runs"], _stages(plan)
    levels = (1, 4, 8, 16, 32, 64)

    assert (len(runs), len({one["scenario_id"] for one in runs})) == (2 * 2 * 6, 2 * 6)
    assert sum(one["requests"] for one in runs) == 2 * 2 * 10 * sum(levels)
    assert stages["serve"]["times"] == 1
    # AMD's own checkpoint is of FP8: half of the bytes, and the embeddings.
    assert stages["model"]["minutes"] * 60 == pytest.approx((WEIGHTS_70B + EMBEDDED_70B) * FETCH_S_PER_BYTE, rel=0.01)
    for osl in (128, 1024):
        spent = [stages[f"load/osl={osl},concurrency={level}"]["minutes"] for level in levels]
        assert spent == sorted(spent)
        assert spent[-1] < 4 * spent[0]  # 64 streams make as many requests each as one does, on the same weights
    needed = (WEIGHTS_70B + EMBEDDED_70B + 64 * 2 * KV_70B * 2048) / GIB
    assert plan["fits"] == [
        {"model": "llama-3.3-70b", "needed_gib": round(needed), "room_gib": round(0.94 * 192 - 2), "fits": True}
    ]
    _require_cost(plan, 2.59, 420)


def test_each_run_of_amds_page_loads_its_model_and_models_follow_each_other(house: NightFixture) -> None:
    plan = _plan(house, "amd-mi300x-throughput")
    runs, stages = plan["runs"], _stages(plan)
    prompts = {"70b": 3200 + 1500 + 2000 + 1500, "405b": 1500 + 1500 + 2000 + 500}
    batches = 1 + 2 + 4 + 8 + 16 + 32 + 64 + 128

    models = [one["scenario"].rpartition("@")[2] for one in runs]
    assert Counter(models) == {f"llama-3.1-{name}": 2 * (4 + 2 * 8) for name in prompts}
    assert len(list(groupby(models))) == 2  # all of one model, then all of the other
    # Two lengths of prompts for each batch, five batches of each size; everything twice.
    assert sum(one["requests"] for one in runs) == 2 * (sum(prompts.values()) + 2 * 2 * 5 * batches)
    weights = {"70b": WEIGHTS_70B + EMBEDDED_70B, "405b": WEIGHTS_405B + EMBEDDED_405B}
    assert stages["model"]["minutes"] * 60 == pytest.approx(sum(weights.values()) * FETCH_S_PER_BYTE, rel=0.01)
    # No server: each of the eighty runs reads the weights of its model.
    assert stages["serve"]["times"] == len(runs) == 80
    loads_s = 40 * sum(weights.values()) * LOAD_S_PER_BYTE + 80 * START_S
    assert stages["serve"]["minutes"] * 60 == pytest.approx(loads_s, rel=0.01)
    # Batches of 128 requests of 4096 tokens with FP8 KV are the most that must fit at once: the engine queues the rest
    # of a throughput run.
    of_batch = {"70b": 128 * KV_70B * 4096, "405b": 128 * KV_405B * 4096}
    assert plan["fits"] == [
        {
            "model": f"llama-3.1-{name}",
            "needed_gib": round((weights[name] + of_batch[name]) / GIB),
            "room_gib": round(8 * (0.9 * 191.98 - 2)),
            "fits": True,
        }
        for name in weights
    ]
    _require_cost(plan, 20.72, 1320)


def test_one_batch_of_amds_page_takes_what_its_bytes_take(house: NightFixture) -> None:
    stages = _stages(_plan(house, "amd-mi300x-throughput"))
    decode_share = 0.44

    # Eight batches of one request, twice: each token reads every weight from eight memories of 5.325 TB/s.
    for name, weights in (("70b", 69.5e9 + 128256 * 8192), ("405b", 403.75e9 + 128256 * 16384)):
        step_s = weights / (8 * 5.325e12) / decode_share
        stage = stages[f"latency/isl=128,concurrency=1@llama-3.1-{name}"]
        assert stage["minutes"] * 60 == pytest.approx(2 * 8 * 2048 * step_s, rel=0.02)


def test_probes_of_searches_are_counted_in_the_plan_of_the_mi325x_study(house: NightFixture) -> None:
    plan = _plan(house, "mi325x-study")
    search = "sweep@qwen3-vl-235b"

    assert plan["searches"] == [{"search": search, "kind": "saturation", "repeats": 1, "probes_max": 12}]
    # Of a search one run is listed. In the time and cost of the night it has as many as it may have.
    stages = _stages(plan)
    assert stages[search]["times"] == 12
    assert sum(stages[name]["times"] for name in {one["scenario"] for one in plan["runs"]}) == len(plan["runs"]) + 11
    shown = house.call("plan", str(ROOT / "suites" / "mi325x-study.toml"), "--target", "digitalocean").stdout
    expected = f"search {search}: the first probe is listed, at most 11 more runs follow from what the probes show"
    assert expected in " ".join(shown.split())


def test_two_engines_and_all_models_of_the_deep_dive_run_on_the_machines_that_hold_them(house: NightFixture) -> None:
    plan = _plan(house, "rocm-cuda-deep-dive")
    runs = [tuple(one["scenario"].split("@")) for one in plan["runs"]]

    # Two levels, three times: six models on one MI300X, four on one H100, 405B on four of eight MI300X.
    assert Counter(machine for _point, _model, machine in runs) == {"mi300x": 6 * 6, "h100": 4 * 6, "mi300x8": 6}
    assert set(Counter(runs).values()) == {3}
    assert sum(one["requests"] for one in plan["runs"]) == 11 * 3 * 20 * (1 + 64)
    servers = [(machine, model) for _point, model, machine in runs]
    assert len(list(groupby(servers))) == len(set(servers)) == 11  # one start for each
    eight_bits, b8 = WEIGHTS_70B + EMBEDDED_70B, 2 * 8.03e9
    weights = {"llama-3.1-70b": eight_bits, "llama-3.1-8b": b8, "llama-3.1-70b-w8a8": eight_bits}
    kv = dict.fromkeys(weights, KV_70B) | {"llama-3.1-8b": 2 * 32 * 8 * 128}  # of one byte
    one, other, eight = plan["machines"]
    for machine, memory_gib, share, price in ((one, 192, 0.9, 2.59), (other, 80, 0.94, 4.41)):
        stages, more = _stages(machine), {"llama-3.1-70b-fp16": 2 * WEIGHTS_70B} if machine is one else {}
        known = weights | more
        # The catalogue lacks the GGUF files; the others are fetched and verified all the same.
        assert stages["model"]["minutes"] * 60 == pytest.approx(sum(known.values()) * FETCH_S_PER_BYTE, rel=0.01)
        assert "not in the catalogue" in stages["model"]["basis"]
        assert {fit["model"]: fit["needed_gib"] for fit in machine["fits"]} == {
            name: round((size + 64 * kv.get(name, KV_70B) * 328) / GIB) for name, size in known.items()
        }
        assert machine["fits"][0]["room_gib"] == pytest.approx(share * memory_gib - 2, abs=1)
        _require_cost(machine, price, 300)
    assert [fit["room_gib"] for fit in eight["fits"]] == [pytest.approx(4 * (0.9 * 192 - 2), abs=1)]
    _require_cost(eight, 20.72, 240)
    assert plan["usd"] == pytest.approx(sum(part["estimates"]["cold"]["usd"] for part in plan["machines"]), abs=0.01)
    assert plan["usd"] < 200
    assert [doubt for doubt in plan["doubts"] if "does not measure a100, rx7900xtx, rtx4090" in doubt]


def test_a_16_bit_file_that_no_repository_is_known_to_have_is_planned_on_a_host_that_has_it_only(
    house: NightFixture,
) -> None:
    suite = str(ROOT / "suites" / "rocm-cuda-deep-dive-f16.toml")

    rented = house.call("plan", suite, "--target", "digitalocean")
    own = json.loads(house.call("plan", suite, "--target", "ssh:me@gpu1", "--json").stdout)

    assert (rented.returncode, "is a host of your own, which digitalocean does not rent" in rented.stderr) == (2, True)
    assert [run["scenario"] for run in own["runs"]].count("llama.cpp/concurrency=1") == 3


def test_the_nightly_suite_has_a_control_and_a_task_and_its_first_night_fits_its_budget(house: NightFixture) -> None:
    plan = _plan(house, "nightly")
    stages, cold = _stages(plan), plan["estimates"]["cold"]

    assert {stage["minutes"] for name, stage in stages.items() if name in {"control", "lm-eval"}} == {15.0}
    assert Counter(one["scenario"] for one in plan["runs"]) == {
        **{f"chat/concurrency={level}": 5 for level in (1, 16, 64)},
        "long-prompts": 5,
    }
    assert plan["usd_max"] == pytest.approx(210 / 60 * 2.59)
    assert cold["billed_minutes"] < 210


def _told(house: NightFixture, command: str, text: str) -> str:
    """What the command line says of a suite of this text, on one line."""
    house.suite.write_text(text)
    return " ".join(house.call(command, str(house.suite), "--target", "digitalocean").stderr.split())


def test_405b_is_refused_on_two_mi300x_and_accepted_on_eight(house: NightFixture) -> None:
    eight = (ROOT / "suites" / "llama-3.1-405b-8xmi300x.toml").read_text()
    eight = eight.replace("@main", f"@{'0' * 40}").replace(":v0.32.0", f"@sha256:{'0' * 64}")  # pinned, so it can run
    two = eight.replace("gpu-mi300x8-1536gb", "two-mi300x").replace("gpu_count = 8", "gpu_count = 2")
    two = two.replace('"--tensor-parallel-size", "8"', '"--tensor-parallel-size", "2"')
    # The weights, and FP8 KV of 32 requests of 4096 tokens; of each GPU 0.9, and 2 GiB kept.
    needed = (WEIGHTS_405B + EMBEDDED_405B + 32 * KV_405B * 4096) / GIB
    why = f"the load does not fit the GPU memory: it needs {needed:.0f} GiB of {2 * (0.9 * 191.98 - 2):.0f} GiB"

    assert "refused" not in _told(house, "plan", eight)
    assert f"warning: the night would be refused: {why}" in _told(house, "plan", two)
    assert f"{house.suite}: the engine would fail: {why}; nothing was rented" in _told(house, "run", two)
    assert not house.data.exists()


def test_mla_with_blocks_of_16_tokens_is_refused_by_the_name_of_the_rule(house: NightFixture) -> None:
    text = (ROOT / "suites" / "deepseek-v3-8xmi325x.toml").read_text()
    refused = "the night would be refused: DeepSeek-V3/R1 with --block-size 16: MLA with AITER needs --block-size 1"

    assert "refused" not in _told(house, "plan", text)
    told = _told(house, "plan", text.replace('"--block-size", "1"', '"--block-size", "16"'))
    assert refused in told
    assert "(mla_block_size; --apply-rules: --block-size 1)" in told


def test_each_training_row_takes_at_most_its_time_limit_and_starts_no_server(
    house: NightFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(house.environment, "HF_TOKEN", "hf_of_nobody")

    plan = _plan(house, "amd-mi300x-training")

    rows = Counter(one["scenario"].rpartition("@")[2] for one in plan["runs"])
    assert rows == {"mi300x": 8 + 3, "mi325x": 7} | {f"mi300x-{nodes}-nodes": 2 for nodes in (2, 4, 8)}
    told = {f"mi300x-{nodes}-nodes": (nodes * 20.72, 420, {180.0}) for nodes in (2, 4, 8)}
    told |= {"mi300x": (20.72, 2100, {120.0, 180.0}), "mi325x": (30.40, 1380, {120.0, 180.0})}
    for machine in plan["machines"]:
        price, lease, limits_told = told.pop(machine["machine"])
        stages = _stages(machine)
        of_machine = [one["scenario"] for one in plan["runs"] if one["scenario"] in stages]
        assert {stages[name]["minutes"] / of_machine.count(name) for name in of_machine} == limits_told
        assert "serve" not in stages
        _require_cost(machine, price, lease)
