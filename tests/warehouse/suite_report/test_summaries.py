"""Tables over several scenarios, each held against arithmetic done by hand."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import stdev
from typing import Any

import pytest

from bench.suite.report import ReportTable
from bench.suite.scenario import Scenario
from bench.suite.suite import Suite
from infra.loadgen.suite_file import parse_suite_file
from warehouse.suite_report.machine_rows import memory_rows, setup_rows, specification_rows
from warehouse.suite_report.measured import Measured, NightValues
from warehouse.suite_report.scenario_rows import scenario_rows
from warehouse.suite_report.summaries import level_rows, mean_rows, peak_rows, total_rows
from warehouse.suite_report.variant_rows import variant_rows

SUITES = Path(__file__).parents[3] / "suites"
REPORT = parse_suite_file(SUITES / "llama-3.3-70b-mi300x.toml")[0]
STUDY = parse_suite_file(SUITES / "mi325x-study.toml")[0]
MI300X: dict[str, Any] = {"gpus": ["AMD Instinct MI300X"], "gpu_count": 1, "precision": "fp8"}
MI300X |= {"model_source": "hf:meta-llama/Llama-3.3-70B-Instruct@main"}
PRINTED = (33.1, 33.2, 32.4, 32.6, 33.1, 33.2, 33.1, 33.0)  # tok/s of the report's eight shapes


def _values(rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> NightValues:
    runs = {name: tuple(map(dict, of_it)) for name, of_it in rows.items()}
    return NightValues("2026-03-01", {name: Measured("accepted", of_it, every=of_it) for name, of_it in runs.items()})


def _rate(output: float, into: float = 1000, out: float = 500, **more: Any) -> dict[str, Any]:
    """A run of so many output tokens a second, whose requests had so many tokens."""
    tokens = {"total_input_tokens": into, "total_output_tokens": out}
    return {"output_throughput_tok_per_s": output, **tokens, "completed": 10, "failed": 0, **more}


def _scenarios(suite: Suite, only: str, model: str | None = None) -> list[Scenario]:
    return [one for one in suite.expand() if one.name.startswith(only) and model in {None, one.model.name}]


def _table(suite: Suite, title: str) -> ReportTable:
    return next(one for one in suite.report.tables if one.title == title)


def test_the_mean_over_the_shapes_and_its_deviation_stand_beside_those_of_the_report() -> None:
    scenarios = REPORT.expand()[:8]
    values = _values({one.name: [_rate(rate, **MI300X)] for one, rate in zip(scenarios, PRINTED, strict=True)})

    mean, deviation = mean_rows(
        REPORT, _table(REPORT, "Mean over the eight shapes that the report measured"), scenarios, values
    )

    assert (mean["value"], mean["published"]) == (pytest.approx(32.9625), "32.96 tok/s")
    assert mean["ratio"] == pytest.approx(32.9625 / 32.96)
    assert (deviation["value"], deviation["published"]) == (pytest.approx(stdev(PRINTED)), "0.29 tok/s")
    assert deviation["share_of_mean"] == pytest.approx(stdev(PRINTED) / 32.9625)


def test_a_mean_over_some_of_the_shapes_is_not_compared() -> None:
    scenarios = REPORT.expand()[:8]

    mean, _deviation = mean_rows(
        REPORT,
        _table(REPORT, "Mean over the eight shapes that the report measured"),
        scenarios,
        _values({scenarios[0].name: [_rate(33.0, **MI300X)]}),
    )

    assert (mean["ratio"], mean["terms"]) == (None, "not compared; 1 of 8 scenarios have a value")


def test_each_level_has_the_status_that_the_study_gives_it() -> None:
    # Output tok/s, p99 in seconds, as printed of Llama 405B; prompts have 3.29 tokens for each of output.
    printed = {150: (2406, 6.15), 200: (2685, 7.35), 300: (3249, 9.09), 500: (3673, 11.78), 750: (3658, 12.01)}
    printed[1000] = (3665, 12.28)  # 3536 there: here it grows a little again
    levels = _scenarios(STUDY, "saturation", "llama-3.1-405b")
    rows = {
        one.name: [_rate(printed[load][0], 3290, 1000, e2el_p99_ms=1000 * printed[load][1])]
        for one in levels
        if (load := one.workload.in_flight) in printed
    }

    found = list(level_rows(STUDY, _table(STUDY, "Saturation"), levels, _values(rows)))

    words = {row["concurrency"]: row["status"] for row in found}
    assert words == {150: "OK", 200: "OK", 300: "OK", 500: "PEAK", 750: "SATURATED", 1000: "SATURATED"}
    assert found[0]["total_throughput_tok_per_s"] == pytest.approx(2406 * 4.29)


def test_a_level_whose_requests_fail_or_wait_too_long_says_so() -> None:
    levels = _scenarios(STUDY, "saturation", "llama-3.1-405b")
    slow = [_rate(200, e2el_p99_ms=2500.0)], [_rate(300, e2el_p99_ms=2500.0, completed=9, failed=1)]
    runs = ([_rate(100, e2el_p99_ms=1000.0)], *slow)
    values = _values({one.name: of_it for one, of_it in zip(levels, runs, strict=False)})

    words = [row["status"] for row in level_rows(STUDY, _table(STUDY, "Saturation"), levels, values)]

    assert words[:3] == ["OK", "DEGRADED", "FAILING"]


def test_the_peak_of_a_model_is_its_best_level_beside_the_printed_one() -> None:
    levels = _scenarios(STUDY, "saturation", "llama-3.1-405b")
    source: dict[str, Any] = {"model_source": levels[0].model.source}
    rates = {one.name: [_rate(float(one.workload.in_flight % 900), 3290, 1000, **source)] for one in levels}

    (row,) = peak_rows(STUDY, _table(STUDY, "Saturation, peak of each model"), levels, _values(rates))

    assert (row["scenario"], row["published"]) == ("saturation/concurrency=750@llama-3.1-405b", "15944 tok/s")
    assert row["ratio"] == pytest.approx(750 * 4.29 / 15944)


def test_a_figure_that_means_nothing_beside_ours_says_why() -> None:
    levels = _scenarios(STUDY, "saturation", "kimi-k2.5")
    values = _values({levels[0].name: [_rate(100.0, model_source=levels[0].model.source)]})

    (row,) = peak_rows(STUDY, _table(STUDY, "Saturation, peak of each model"), levels, values)

    assert (row["published"], row["ratio"]) == ("7327 tok/s", None)
    assert row["terms"] == "not compared; with images there, text here"


def test_totals_count_each_run_once_and_all_its_requests() -> None:
    levels = _scenarios(STUDY, "quick", "llama-3.1-405b")[:2]
    source: dict[str, Any] = {"model_source": levels[0].model.source}
    values = _values({one.name: [_rate(1.0, completed=8, failed=2, **source)] for one in levels})

    rows = list(total_rows(STUDY, _table(STUDY, "Totals"), levels, values))

    found = {(row["model"], row["count"]): row["value"] for row in rows}
    assert found["all", "requests"] == 20
    assert found["all", "tokens"] == 2 * 1500
    assert found["llama-3.1-405b", "success_pct"] == found["all", "success_pct"] == 80
    success = next(row for row in rows if (row["model"], row["count"]) == ("all", "success_pct"))
    assert success["ratio"] == pytest.approx(0.8)


def test_a_variant_over_the_other_has_an_interval_for_its_gain_and_for_its_spread() -> None:
    pair = [one for one in _scenarios(STUDY, "ablation") if one.workload.concurrency == 100]
    off, on = (100.0, 100.1, 99.9, 100.05, 99.95), (104.0, 104.4, 103.6, 104.2, 103.8)
    values = _values({one.name: [_rate(rate) for rate in rates] for one, rates in zip(pair, (off, on), strict=True)})

    row, everything = variant_rows(STUDY, _table(STUDY, "AITER on over off"), pair, values)

    assert row["ratio"] == pytest.approx(1.04, rel=1e-4)
    assert row["ratio_low"] < 1.04 < row["ratio_high"]
    assert row["spread_ratio"] == pytest.approx(4 / 1.04)
    # The quantile of F for 4 and 4 degrees of freedom is 9.6045: five repeats say little of a spread.
    assert row["spread_ratio_low"] == pytest.approx(4 / 1.04 / 9.6045**0.5, rel=1e-4)
    assert row["spread_ratio_high"] == pytest.approx(4 / 1.04 * 9.6045**0.5, rel=1e-4)
    assert everything["published"].startswith("3-5 % more")
    assert (everything["ratio_low"], everything["ratio_high"]) == (row["ratio"], row["ratio"])


def test_a_table_shows_terms_as_found_as_requested_and_of_the_flags() -> None:
    page = parse_suite_file(SUITES / "amd-mi300x-throughput.toml")[0]
    first = page.expand()[0]
    values = _values({first.name: [_rate(1.0, precision="fp8", tp_size=8, request_count=3200)]})

    (row,) = scenario_rows(page, _table(page, "Throughput of generated tokens"), [first], values)

    shown = {name: row[name] for name in ("precision", "tp_size", "isl", "osl", "request_count", "--max-num-seqs")}
    assert shown == {
        "precision": "fp8",
        "tp_size": 8,
        "isl": 128,
        "osl": 2048,
        "request_count": 3200,
        "--max-num-seqs": "3200",
    }


def test_memory_is_divided_into_weights_and_kv_cache_beside_the_printed_amounts() -> None:
    rows = {
        row["component"]: row for row in memory_rows(REPORT, _table(REPORT, "Memory"), REPORT.expand(), _values({}))
    }

    # FP8 weights with 16-bit embeddings; the report's ~132 GB is that of 16-bit weights, in GiB.
    assert rows["weights"]["gib"] == pytest.approx((70.55e9 + 2 * 128256 * 8192) / 1024**3, rel=0.001)
    assert rows["weights"]["ratio"] == pytest.approx(rows["weights"]["gib"] / 132)
    assert rows["available"]["gib"] - rows["used"]["gib"] == pytest.approx(rows["headroom"]["gib"])
    assert rows["used"]["gib"] == pytest.approx(rows["weights"]["gib"] + rows["KV cache"]["gib"])
    assert rows["headroom"]["terms"].startswith("not compared; the source does not state the load")


def test_specifications_have_the_ratio_of_two_gpus_and_the_printed_ones_beside() -> None:
    table = _table(REPORT, "MI300X and H100")
    rows = {(row["item"], row["gpu"]): row for row in specification_rows(REPORT, table, (), _values({}))}

    assert rows["memory, GB", "MI300X over H100-SXM"]["value"] == pytest.approx(2.4)
    assert rows["memory bandwidth, TB/s", "H100-SXM"]["ratio"] == pytest.approx(1)
    assert rows["compute units", "MI300X"]["value"] == 304


def test_a_peak_of_other_units_stands_beside_ours_without_a_ratio() -> None:
    dive = parse_suite_file(SUITES / "rocm-cuda-deep-dive.toml")[0]

    rows = {
        (row["item"], row["gpu"]): row
        for row in specification_rows(dive, _table(dive, "Specifications"), (), _values({}))
    }

    assert (rows["FP16, TFLOPS", "H100-SXM"]["published"], rows["FP16, TFLOPS", "H100-SXM"]["ratio"]) == (
        "1979 TFLOPS",
        None,
    )
    assert rows["FP32, TFLOPS", "MI300X"]["terms"].startswith("not compared; of the matrix units there")
    assert rows["FP16, TFLOPS", "MI300X"]["ratio"] == pytest.approx(1307.4 / 1307)
    assert {gpu for _item, gpu in rows} >= {"A100-80", "RX7900XTX", "RX7900XT", "RTX4090"}


def test_a_setup_has_what_was_found_beside_what_the_source_states(tmp_path: Path) -> None:
    found = MI300X | {"rocm_version": "7.1.0", "engine": "vllm", "engine_version_found": "0.32.0"}
    values = NightValues("2026-03-01", {REPORT.expand()[0].name: Measured("accepted", (found,))}, data=tmp_path)

    rows = {
        row["item"]: row for row in setup_rows(REPORT, _table(REPORT, "Hardware and software"), REPORT.expand(), values)
    }

    assert (rows["ROCm"]["found"], rows["ROCm"]["published"]) == ("7.1.0", "7.0.0")
    assert rows["engine"] == {"item": "engine", "found": "vllm 0.32.0", "published": "vLLM 0.9.2 on Python 3.10"}
    assert rows["kernel"] == {"item": "kernel", "found": None, "published": None}


def test_totals_count_rejected_runs_too_and_say_where_a_count_is_unknown() -> None:
    levels = _scenarios(STUDY, "quick", "llama-3.1-405b")[:1]
    good, rejected = _rate(1.0), _rate(1.0, completed=6, failed=4, total_output_tokens=None)
    measured = Measured("accepted", (good,), every=(good, rejected))

    rows = total_rows(STUDY, _table(STUDY, "Totals"), levels, NightValues("n", {levels[0].name: measured}))

    found = {row["count"]: row for row in rows if row["model"] == "all"}
    assert {count: row["value"] for count, row in found.items()} == {
        "runs": 2, "requests": 20, "prompt tokens": 2000, "output tokens": 500, "tokens": 1500, "success_pct": 80
    }  # fmt: skip
    assert {count: row["runs"] for count, row in found.items() if row["runs"] != 2} == {"output tokens": 1, "tokens": 1}


def test_each_of_eight_replicas_that_share_their_experts_holds_its_part_and_a_cache() -> None:
    suite = parse_suite_file(SUITES / "deepseek-v3-8xmi325x.toml")[0]
    flags = ("--data-parallel-size", "8", "--enable-expert-parallel")
    spread = suite.model_copy(update={"engine": suite.engine.model_copy(update={"flags": flags})})
    table = _table(REPORT, "Memory")

    rows = {row["component"]: row["gib"] for row in memory_rows(spread, table, spread.expand(), _values({}))}

    assert 671e9 / 8 < rows["weights"] * 1024**3 < 671e9 / 4
    assert rows["used"] == pytest.approx(rows["weights"] + rows["KV cache"])
    assert rows["KV cache"] > 0
