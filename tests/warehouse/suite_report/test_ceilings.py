"""Rooflines and memory of a report, held against arithmetic done by hand."""

from pathlib import Path

import pytest

from bench.suite.report import ReportTable
from bench.suite.suite import Suite
from infra.loadgen.suite_file import parse_suite_file
from warehouse.suite_report.ceilings import memory_fit_rows, roofline_rows
from warehouse.suite_report.measured import Measured, NightValues

DEEP_DIVE = Path(__file__).parents[3] / "suites" / "rocm-cuda-deep-dive.toml"
TABLE = ReportTable(title="Roofline", kind="roofline")
GPUS = {"h100": "H100-SXM", "a100": "A100-80", "rx7900xtx": "RX7900XTX", "rtx4090": "RTX4090"}
PARAMS_8B = 7_504_924_672  # that are multiplied for each token
ALONE, TOGETHER = (f"vllm/concurrency={count}@llama-3.1-8b@mi300x" for count in (1, 64))


@pytest.fixture(scope="module")
def deep_dive() -> Suite:
    return parse_suite_file(DEEP_DIVE)[0]


def _values(**facts: object) -> NightValues:
    """A night that measured 200 tok/s of one stream and 5,000 of 64 on this hardware."""
    known = {"gpus": ["AMD Instinct MI300X"], "model_source": "hf:meta-llama/Llama-3.1-8B-Instruct@main"} | facts
    rates = {ALONE: 200.0, TOGETHER: 5000.0}
    rows = {name: ({"output_throughput_tok_per_s": rate, **known},) for name, rate in rates.items()}
    return NightValues("2026-03-01", {name: Measured("accepted", row) for name, row in rows.items()})


def test_a_roofline_is_bandwidth_over_weights_and_peak_over_operations(deep_dive: Suite) -> None:
    rows = list(roofline_rows(deep_dive, TABLE, deep_dive.expand(), _values()))
    row = next(one for one in rows if (one["gpu"], one["model"]) == ("MI300X", "llama-3.1-8b"))

    assert row["single_stream_tok_per_s"] == pytest.approx(5.325e12 / (2 * PARAMS_8B), rel=1e-3)
    assert row["measured_single_stream_share"] == pytest.approx(200 / row["single_stream_tok_per_s"])
    assert row["prefill_tok_per_s"] > row["decode_tok_per_s"] > 1307.4e12 / (2 * PARAMS_8B) * 0.99
    assert row["measured_best_share"] == pytest.approx(5000 / row["decode_tok_per_s"])
    assert row["terms"] == "equal"
    assert {(one["gpu"], one["model"]) for one in rows} == {
        (GPUS.get(one.machine.name or "", "MI300X"), one.model.name) for one in deep_dive.expand()
    }
    assert {one["terms"] for one in rows if one["gpu"] == "H100-SXM"} <= {
        "nothing was measured",
        "the catalogue lacks the model or the GPU",
    }


@pytest.mark.parametrize(
    ("facts", "terms"),
    [
        ({"gpus": []}, "GPU: MI300X requested, none here"),
        ({"gpus": ["NVIDIA H100 80GB HBM3"]}, "GPU: MI300X requested, H100-SXM here"),
        ({"model_source": "generated:tiny?seed=1"}, "model: Llama-3.1-8B requested, generated:tiny?seed=1 here"),
    ],
)
def test_other_hardware_or_another_model_has_no_share_of_a_roofline(
    deep_dive: Suite, facts: dict[str, object], terms: str
) -> None:
    rows = roofline_rows(deep_dive, TABLE, deep_dive.expand(), _values(**facts))
    row = next(one for one in rows if (one["gpu"], one["model"]) == ("MI300X", "llama-3.1-8b"))

    assert (row["measured_single_stream_share"], row["measured_best_share"]) == (None, None)
    assert (row["measured_best_tok_per_s"], row["terms"]) == (5000.0, terms)


def test_70b_in_16_bits_fits_one_mi300x_and_needs_two_h100(deep_dive: Suite) -> None:
    rows = memory_fit_rows(deep_dive, TABLE, deep_dive.expand(), _values())
    of_70b = {
        (row["gpu"], row["precision"]): row
        for row in rows
        if row["model"] == "Llama-3.1-70B" and row["gpu"] in {"MI300X", "H100-SXM", "RTX4090"}
    }

    assert of_70b["MI300X", "bf16"]["weights_gib"] == pytest.approx(70_553_706_496 * 2 / 2**30)
    assert {key: (row["fits"], row["gpus_needed"]) for key, row in of_70b.items()} == {
        ("MI300X", "bf16"): (True, 1),
        ("MI300X", "fp8"): (True, 1),
        ("MI300X", "int4"): (True, 1),
        ("H100-SXM", "bf16"): (False, 2),
        ("H100-SXM", "fp8"): (True, 1),
        ("H100-SXM", "int4"): (True, 1),
        ("RTX4090", "bf16"): (False, 7),
        ("RTX4090", "fp8"): (False, 4),
        ("RTX4090", "int4"): (False, 3),
    }


def test_what_fits_has_the_models_and_the_context_of_the_article_with_its_figures_beside(deep_dive: Suite) -> None:
    table = next(one for one in deep_dive.report.tables if one.title == "What fits")
    rows = memory_fit_rows(deep_dive, table, deep_dive.expand(), _values())
    found = {(row["model"], row["precision"]): row for row in rows if row["machine"] == "mi300x"}

    of_70b, mixtral = found["Llama-3.1-70B", "bf16"], found["Mixtral-8x7B", "bf16"]
    assert of_70b["kv_cache_gib"] == pytest.approx(32768 * 2 * 2 * 80 * 8 * 128 / 2**30)  # half of the printed 20 GB
    assert (of_70b["published"], mixtral["published"]) == ("~140 GB", "~93 GB")
    assert (of_70b["ratio"], mixtral["ratio"]) == (pytest.approx(1, abs=0.01), pytest.approx(1, abs=0.01))
    over_100b = found["Llama-4-Scout-17B-16E", "bf16"]
    assert (over_100b["fits"], over_100b["gpus_needed"]) == (False, 2)
