import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.audit.claim import Claim
from tests.data.formats.inferencex.make import GPUS, aggregate
from tests.data.formats.vllm_serve.make import short_run
from tests.warehouse.importers.reading import FORMATS, SAMPLES, at_hand, claims_at, claims_of

TWINS = FORMATS / "inferencex"


def row(version: int = 3, **values: Any) -> Claim:
    (claim,) = claims_of("agg.json", json.dumps({**aggregate(short_run(24), version), **values}))
    return claim


def codes(claim: Claim) -> list[str]:
    return [remark.code for remark in claim.remarks]


def test_keys_without_a_suffix_are_seconds() -> None:
    run = short_run(21)

    (claim,) = claims_at(TWINS / "raw-seconds.json")

    assert claim.lineage.format == "inferencex-raw"
    assert claim.latency("tpot", "median") == pytest.approx(np.median(run.tpot_s))
    assert claim.latency("e2el", "p99") == pytest.approx(np.percentile(run.e2el_s, 99))
    assert claim.said.input_throughput_tok_per_s == pytest.approx(run.input_tok_per_s)


def test_the_older_client_keeps_its_suffix_and_its_colon() -> None:
    (claim,) = claims_at(TWINS / "raw.json")

    assert claim.lineage.format == "inferencex-raw"
    assert claim.latency("ttft", "mean") == pytest.approx(short_run(20).ttft_s.mean())
    assert claim.said.started_at_s == 1_790_000_000.0
    assert claim.said.ended_at_s == pytest.approx(1_790_000_000.0 + short_run(20).duration_s)
    assert (claim.said.goodput_per_s, "request_goodput:" in claim.unread) == (None, False)


def test_a_row_is_of_one_gpu_and_in_seconds() -> None:
    run = short_run(24)

    claim = row()

    assert claim.said.total_per_gpu_tok_per_s == pytest.approx((run.input_tok_per_s + run.output_tok_per_s) / GPUS)
    assert claim.said.output_per_gpu_tok_per_s == pytest.approx(run.output_tok_per_s / GPUS)
    assert claim.said.input_throughput_tok_per_s == pytest.approx(run.input_tok_per_s)
    assert claim.said.total_throughput_tok_per_s is None
    assert claim.latency("e2el", "mean") == pytest.approx(run.e2el_s.mean())
    assert claim.said.per_user_tok_per_s == pytest.approx(1 / np.median(run.tpot_s))
    assert (claim.asked.precision, claim.asked.gpu, claim.asked.concurrency) == ("fp8", "mi300x", 2)
    assert (claim.asked.is_speculative, claim.asked.isl, claim.asked.osl) == (False, 256, 8)


@pytest.mark.parametrize(
    ("version", "values", "count"),
    [
        (1, {"tp": 4, "ep": 2}, 8),
        (2, {"tp": 4, "ep": 4}, 4),
        (3, {"tp": 4, "ep": 4, "pp": 2}, 8),
        (3, {"disagg": "true", "num_prefill_gpu": 8, "num_decode_gpu": 16}, 24),
        (3, {"disagg": True}, None),
        (3, {"tp": None}, None),
    ],
)
def test_gpus_are_counted_by_the_version_of_the_schema(version: int, values: dict[str, Any], count: int | None) -> None:
    assert row(version, **values).asked.gpu_count == count


def test_power_is_of_one_gpu_and_energy_of_all() -> None:
    run, device = short_run(24), row().device

    assert device is not None
    assert (device.power_mean_w, device.energy_scope) == (500.0, "gpus")
    assert device.energy_j == pytest.approx(1000.0 * run.duration_s)
    assert device.joules_per_output_token == pytest.approx(1000.0 / run.output_tok_per_s)


def test_power_that_is_not_valid_is_not_read() -> None:
    device = row(power_valid="false").device

    assert device is not None
    assert (device.was_asked, device.power_mean_w, device.energy_j) == (True, None, None)


def test_a_row_without_power_has_no_device() -> None:
    assert row(2).device is None


def test_one_over_a_standard_deviation_means_nothing() -> None:
    assert codes(row(std_intvty=12.0)) == ["meaningless_metric"]


def test_answers_of_one_token_have_no_tpot() -> None:
    nothing: dict[str, Any] = {f"{statistic}_tpot": 0.0 for statistic in ("mean", "median", "std", "p99")}
    nothing |= {f"{statistic}_itl": 0.0 for statistic in ("mean", "median", "std", "p99")}

    claim = row(osl=1, **nothing)

    assert claim.latency("tpot", "mean") is None
    assert claim.remarks == ()


@pytest.mark.parametrize("name", ["tput_per_gpu", "mean_ttft", "mean_tpot"])
def test_a_zero_is_a_failure(name: str) -> None:
    assert codes(row(**{name: 0})) == ["failed_not_zero"]


@pytest.mark.parametrize("name", ["tput_per_gpu", "p99_ttft", "conc"])
@pytest.mark.parametrize("value", [float("nan"), "fast", [1.0], {}])
def test_a_value_that_is_none_is_left_out_by_name(name: str, value: Any) -> None:
    claim = row(**{name: value})

    assert codes(claim) == ["unreadable_value"]
    assert name in claim.remarks[0].message


def test_rows_of_perf_eval_are_told_by_the_same_keys() -> None:
    (claim,) = claims_at(TWINS / "perf-eval.json")

    assert (claim.lineage.format, claim.lineage.place) == ("inferencex-agg", "[0]")
    assert claim.unread["nightly"] is True


def test_a_score_is_the_quality_of_its_configuration() -> None:
    (claim,) = claims_at(TWINS / "agg_eval_all.json")

    assert (claim.said.quality, claim.asked.model, claim.label) == (
        0.91,
        "example/dense-8b",
        "gsm8k of example/dense-8b",
    )
    assert claim.unread["n_eff"] == 1319


RAW = {  # each with its concurrency and its median TPOT in seconds
    TWINS / "raw-seconds.json": (2, 0.0120555),
    SAMPLES / "inferencex_glm5_fp8_tp8_isl8192_osl128_conc16.json": (16, 0.11806020186847355),
    SAMPLES / "inferencex_qwen35_tp8_isl8192_osl128_conc32.json": (32, 0.2929019108561315),
}


@pytest.mark.parametrize("path", at_hand(*RAW), ids=lambda path: path.name)
def test_a_raw_result_is_read(path: Path) -> None:
    (claim,) = claims_at(path)

    concurrency, tpot_s = RAW[path]
    assert (claim.lineage.format, claim.asked.concurrency, claim.remarks) == ("inferencex-raw", concurrency, ())
    assert claim.latency("tpot", "median") == tpot_s


@pytest.mark.parametrize("value", [1e308, 10**400, 2**60])
def test_a_count_of_more_than_there_can_be_is_left_out(value: float) -> None:
    claim = row(pp=value)

    assert codes(claim)[0] == "unreadable_value"
    assert claim.asked.pp_size is None
