"""The names that tables print are read by catalog/spellings.csv; what is not read is named with its nearest match."""

import pytest

from bench import evidence_columns as ev
from bench.audit.claim import Claim, NotRead
from bench.audit.evidence.evidence import Observed, Subject
from bench.audit.judge import row_evidence
from bench.errors import UnknownFormatError
from catalog.read import read_spellings
from tests.warehouse.importers.reading import FORMATS, claims_at, claims_of
from warehouse.importers.claims_table.claimed_metrics import NoSlot, Slot, slot_of
from warehouse.importers.claims_table.columns import COLUMNS
from warehouse.importers.claims_table.vocabulary import column_of, metric_of

METRICS = [row for row in read_spellings() if row.kind == "metric"]


def claim_of(text: str) -> Claim:
    (claim,) = claims_of("claims.csv", text)
    return claim


def test_every_spelling_was_seen_somewhere_and_is_read_as_it_says() -> None:
    wrong = [
        row.spelling
        for row in METRICS
        if (found := metric_of(row.spelling)) is None or found.candidates != row.candidates
    ]

    assert (len(METRICS) >= 200, wrong) == (True, [])
    assert all(row.source for row in METRICS)


def test_every_spelling_of_a_column_means_a_column() -> None:
    wrong = [
        row.spelling for row in read_spellings() if row.kind == "column" and column_of(row.spelling) != (row.means,)
    ]

    assert wrong == []
    assert {row.means for row in read_spellings() if row.kind == "column"} == set(COLUMNS)


@pytest.mark.parametrize(
    ("metric", "unit", "field"),
    [
        ("Throughput (tok/s)", "", "unstated_throughput_tok_per_s"),
        ("tokens/s", "", "unstated_throughput_tok_per_s"),
        ("Mean TTFT (ms)", "", "ttft.mean"),
        ("  mean_TTFT ", "ms", "ttft.mean"),
        ("P95 TTFT", "ms", "ttft.p95"),
        ("e2e latency p99.9", "s", "e2el.p999"),
        ("TFLOPS/s/GPU", "", "train_tflops_per_gpu"),
        ("cost per 1M tokens", "", "usd_per_mtok_unstated"),
        ("$/1M output tokens", "", "usd_per_mtok_output"),
        ("$ per million input tokens", "", "usd_per_mtok_input"),
        ("Throughput", "output tokens/sec", "output_throughput_tok_per_s"),
        ("Throughput", "requests/s", "request_throughput_per_s"),
        ("Output token throughput", "tok/s/GPU", "output_per_gpu_tok_per_s"),
        ("output tok/s/gpu", "", "output_per_gpu_tok_per_s"),
        ("total_tokens_processed", "tokens", "total_tokens"),
    ],
)
def test_a_natural_spelling_is_read(metric: str, unit: str, field: str) -> None:
    slot = slot_of(metric, unit)

    assert isinstance(slot, Slot)
    assert (slot.field, slot.scale is None) == (field, False)


def test_what_may_be_two_metrics_is_refused_with_both() -> None:
    assert slot_of("tokens/s/GPU", "") == NoSlot(
        "it may be output_per_gpu_tok_per_s or total_per_gpu_tok_per_s or train_tok_per_s_per_gpu"
    )


def test_an_unknown_metric_is_named_with_its_nearest() -> None:
    (found,) = claim_of("metric,value,unit\nThruput,2800,tok/s\n").not_read

    assert (found.what, found.name, found.value, found.nearest) == ("metric", "Thruput", "2800 tok/s", "Throughput")


def test_an_unknown_column_is_named_with_its_nearest() -> None:
    claim = claim_of("metric,value,unit,precission,model\nthroughput_gen,33,tok/s,fp8,m\n")

    assert [(each.what, each.name, each.value, each.nearest) for each in claim.not_read] == [
        ("column", "precission", "fp8", "precision")
    ]
    assert (claim.asked.model, claim.asked.precision) == ("m", None)


def test_a_latency_without_a_statistic_is_the_median_and_says_so() -> None:
    claim = claim_of("metric,value,unit\nTTFT (ms),368.11,\n")

    assert claim.latency("ttft", "median") == pytest.approx(0.36811)
    assert claim.latency("ttft", "mean") is None
    assert [remark.code for remark in claim.remarks] == ["metric_ambiguous"]


def test_a_latency_above_its_own_percentile_can_only_be_the_mean() -> None:
    claim = claim_of("metric,value,unit\nTTFT,500,ms\nP90 TTFT,400,ms\n")

    assert (claim.latency("ttft", "mean"), claim.latency("ttft", "median")) == (0.5, None)


def test_a_unit_that_contradicts_the_name_is_refused() -> None:
    claim = claim_of("metric,value,unit\nMean TTFT (ms),2,s\n")

    assert claim.latency_s == {}
    assert [(each.what, each.why) for each in claim.not_read] == [
        ("value", "its unit is unknown, or is not that of its metric")
    ]


@pytest.mark.parametrize(
    ("row", "usd"),
    [
        ("cost per 1M tokens,$0.13,", 0.13),
        ("$/1M tokens,$0.13,", 0.13),
        ("Cost per 1M tokens,$0.13,USD/1M tokens", 0.13),
    ],
)
def test_a_price_with_its_sign_is_read(row: str, usd: float) -> None:
    claim = claim_of(f"metric,value,unit\n{row}\n")

    assert (claim.said.usd_per_mtok_unstated, claim.not_read) == (usd, ())


def test_a_cell_whose_unit_contradicts_its_column_is_refused() -> None:
    claim = claim_of("metric,value,unit\nmean_tpot,2 s,ms\n")

    assert (claim.latency_s, [each.what for each in claim.not_read]) == ({}, ["value"])


def test_a_spread_of_latencies_may_be_0_and_so_may_failures() -> None:
    claim = claim_of("metric,value,unit\nstd_ttft,0,ms\nFailed requests,0,\n")

    assert (claim.latency("ttft", "std"), claim.said.failed, claim.remarks) == (0.0, 0, ())


def test_the_columns_of_a_served_engine_are_read() -> None:
    head = "metric,value,unit,max_model_len,image,kv_cache_dtype,gpu_memory_utilization,mode,concurrency_or_batch"
    claim = claim_of(f"{head}\noutput_throughput,33,tok/s,8192,vllm@sha256:1,fp8,90%,offline,256\n")

    asked = claim.asked
    assert (asked.max_model_len, asked.image, asked.kv_precision) == (8192, "vllm@sha256:1", "fp8")
    assert (asked.gpu_memory_utilization, asked.concurrency, asked.batch) == (0.9, None, None)
    assert claim.not_read == ()


WIDE = """GPU,Model,#-GPUs,Concurrency,TTFT Avg (ms),Tput Decode (TPS),Notes,Happiness,Cost per 1M tokens
H100 SXM,Llama-3.3-70B,8,1,105.5,21.8,first,9,$0.13
H100 SXM,Llama-3.3-70B,8,32,N/A,"33,1",,,
"""


def test_a_table_with_a_column_for_each_metric_is_one_claim_per_row() -> None:
    first, second = claims_of("vendor.csv", WIDE)

    assert (first.lineage.format, first.lineage.place, first.asked.gpu, first.asked.gpu_count) == (
        *("table", "line 2", "H100 SXM"),
        8,
    )
    assert first.latency("ttft", "mean") == pytest.approx(0.1055)
    assert first.said.output_throughput_tok_per_s == 21.8
    assert (first.asked.concurrency, first.said.usd_per_mtok_unstated) == (1, 0.13)
    assert [(each.what, each.name, each.value) for each in first.not_read] == [("column", "Happiness", "9")]
    assert [(each.name, each.value) for each in second.not_read] == [
        ("TTFT Avg (ms)", "N/A"),
        ("Tput Decode (TPS)", "33,1"),
    ]


def test_a_table_without_a_metric_is_no_claims_table() -> None:
    with pytest.raises(UnknownFormatError):
        claims_of("people.csv", "Model,Name,Age\nm,A,3\n")


def test_observed_lengths_are_held_against_the_asked_ones() -> None:
    claim = claim_of(
        "metric,value,unit,isl,osl,observed_isl,observed_osl\noutput_throughput,33,tok/s,128,2048,128,900\n"
    )

    assert (claim.said.mean_input_tokens, claim.said.mean_output_tokens) == (128.0, 900.0)
    observed = row_evidence(claim, Subject())[ev.OSL_RATIO]
    assert isinstance(observed, Observed)
    assert observed.value == pytest.approx(900 / 2048)


@pytest.mark.parametrize(("value", "spread"), [("33", "1.0"), ("33", "3.0303 %"), ("33 ± 1", "")])
def test_a_spread_over_repeats_is_an_interval(value: str, spread: str) -> None:
    claim = claim_of(f"metric,value,unit,spread,n\noutput_throughput,{value},tok/s,{spread},3\n")

    # Student's t of two degrees of freedom, over the square root of three repeats.
    assert claim.said.interval_half_width_share == pytest.approx(4.303 / 33 / 3**0.5, rel=1e-4)
    assert claim.not_read == ()


@pytest.mark.parametrize(
    ("row", "names"),
    [
        ("output_throughput,33,tok/s,1.0,", ["spread"]),
        ("output_throughput,33 ± 1,tok/s,,", ["spread"]),
        ("output_throughput,33,tok/s,small,3", ["spread", "n"]),
        ("output_throughput,33,tok/s,1.0,1", ["spread", "n"]),
        ("mean_ttft_ms,33,ms,1.0,3", ["spread", "n"]),
    ],
)
def test_a_spread_that_gives_no_interval_is_named(row: str, names: list[str]) -> None:
    claim = claim_of(f"metric,value,unit,spread,n\n{row}\n")

    assert [each.name for each in claim.not_read] == names
    assert claim.said.interval_half_width_share is None


def test_a_column_of_another_tools_table_that_is_not_read_is_named() -> None:
    (claim,) = claims_at(FORMATS / "mad/training.csv")

    assert claim.not_read == (NotRead("column", "mode", "pretrain", "mad-training has no field for it", "mode"),)


@pytest.mark.parametrize(
    ("metric", "value", "field", "number"),
    [
        ("GPU KV cache size", "425,000 tokens", "printed_kv_cache_tokens", 425000),
        ("Maximum concurrency for 8,192 tokens per request", "51.9x", "printed_kv_max_concurrency", 51.9),
        ("Maximum concurrency for 8,192 tokens per request", "51.9x", "max_model_len", 8192),
        ("Maximum concurrency", "51.9", "printed_kv_max_concurrency", 51.9),
    ],
)
def test_what_an_engine_prints_of_its_cache_is_read(metric: str, value: str, field: str, number: float) -> None:
    (claim,) = claims_of("claims.csv", f'model,metric,value\nLlama-3.1-8B,"{metric}","{value}"\n')

    assert getattr(claim.asked if field == "max_model_len" else claim.said, field) == number
    assert not claim.not_read
