import csv
from pathlib import Path
from typing import Any

import pytest

from bench.audit.claim import Bound, Claim
from tests.data.formats.claims_table.make import SAME
from tests.warehouse.importers.reading import FORMATS, TABLES, claims_at, claims_of, folder_and_name
from warehouse.importers.claims_table.claimed_metrics import NoSlot, Slot, slot_of
from warehouse.importers.parsing.printed import Quantity, read_quantity

TWIN = FORMATS / "claims_table/small.csv"


def table(*rows: dict[str, str]) -> str:
    columns = list(dict.fromkeys(name for row in rows for name in row))
    lines = [",".join(columns), *(",".join(f'"{row.get(name, "")}"' for name in columns) for row in rows)]
    return "\n".join(lines)


def claims(*rows: dict[str, str]) -> list[Claim]:
    return claims_of("claims.csv", table(*({**SAME, **row} for row in rows)))


@pytest.mark.parametrize(
    ("text", "quantity"),
    [
        ("33.1", Quantity(33.1)),
        ("~33", Quantity(33.0, qualifier="about")),
        ("15-20", Quantity(None, 15.0, 20.0, "range")),
        ("~15-20", Quantity(None, 15.0, 20.0, "range")),
        ("<1", Quantity(None, None, 1.0, "below")),
        (">= 1,000", Quantity(None, 1000.0, None, "above")),
        ("500+", Quantity(None, 500.0, None, "above")),
        ("1,234.5 tok/s", Quantity(1234.5, unit="tok/s")),
        ("1,234", Quantity(1234.0)),
        ("1.2k", Quantity(1200.0)),
        ("12.5M", Quantity(12.5e6)),
        ("1-2k", Quantity(None, 1000.0, 2000.0, "range")),
        ("~100", Quantity(100.0, qualifier="about")),
        ("> 100", Quantity(None, 100.0, None, "above")),
        ("~$6.54", Quantity(6.54, qualifier="about", unit="usd")),
        ("54.28 ± 2.56", Quantity(54.28, spread=2.56)),
        ("54 +/- 2 tok/s", Quantity(54.0, unit="tok/s", spread=2.0)),
        ("33,1", None),
        ("1.234,5", None),
        ("1 234", Quantity(1234.0)),
        ("12\u202f345.6 tok/s", Quantity(12345.6, unit="tok/s")),
        ("12 34", None),
        ("150*", Quantity(150.0)),
        ("150 [2]", Quantity(150.0)),
        ("**1.2k**", Quantity(1200.0)),
        ("150 (1)", None),
        ("Up to 900", Quantity(None, None, 900.0, "below")),
        ("at least 900 tok/s", Quantity(None, 900.0, None, "above", "tok/s")),
        ("approx. 900", Quantity(900.0, qualifier="about")),
        ("\u2014", Quantity()),
        ("TBD", Quantity()),
        ("n.a.", Quantity()),
        ("0.4.3", None),
        ("33 per cent of it", None),
        ("inf", Quantity()),
        ("18.9e6", Quantity(18.9e6)),
        ("-3", Quantity(-3.0)),
        ("N/A", Quantity()),
        ("", Quantity()),
        (f"1{'0' * 400}", None),
        ("OOM", Quantity(qualifier="failed")),
        ("A=Good | B=Better", None),
    ],
)
def test_a_value_is_read_as_it_is_printed(text: str, quantity: Quantity | None) -> None:
    assert read_quantity(text) == quantity


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("33,1", "its comma may stand for a decimal point or for thousands: write 33.1 or 1,234"),
        ("inf", "it is not finite"),
        ("N/A", "it states no number"),
        ("", "it states no number"),
        ("fast", "it is not a number"),
    ],
)
def test_a_value_without_a_number_is_refused_with_its_reason(text: str, why: str) -> None:
    (claim,) = claims({"metric": "output_throughput", "value": text, "unit": "tok/s"})

    assert [(each.what, each.name, each.why) for each in claim.not_read] == [("value", "output_throughput", why)]
    assert claim.said.output_throughput_tok_per_s is None


@pytest.mark.parametrize(
    ("metric", "unit", "slot"),
    [
        ("output_throughput", "tok/s", Slot("said", "output_throughput_tok_per_s")),
        ("throughput_gen", "tokens/sec", Slot("said", "output_throughput_tok_per_s")),
        ("input_throughput", "tok/s", Slot("said", "input_throughput_tok_per_s")),
        ("total_token_throughput", "tok/s", Slot("said", "total_throughput_tok_per_s")),
        ("throughput_total_per_gpu", "tok/s/GPU", Slot("said", "total_per_gpu_tok_per_s")),
        ("output_throughput", "tok/s/GPU", Slot("said", "output_per_gpu_tok_per_s")),
        ("interactivity_max", "tok/s/user", Slot("said", "per_user_tok_per_s")),
        ("batch_throughput", "tok/s", Slot("said", "unstated_throughput_tok_per_s", 1.0, "tokens_ambiguous")),
        ("mlperf_offline", "Tokens/s", Slot("said", "output_throughput_tok_per_s")),
        ("mlperf_interactive", "Queries/s", Slot("said", "request_throughput_per_s")),
        ("mean_ttft_ms", "ms", Slot("latency", "ttft.mean", 1e-3)),
        ("mean_ttft_ms", "s", Slot("latency", "ttft.mean", None, "unit_unknown")),
        ("p99_e2e_latency_ms", "ms", Slot("latency", "e2el.p99", 1e-3)),
        ("latency_avg", "s", Slot("latency", "e2el.mean")),
        ("latency_avg", "", Slot("latency", "e2el.mean", None, "unit_unknown")),
        ("cost_per_1M_tokens", "USD", Slot("said", "usd_per_mtok_unstated", 1.0, "cost_denominator_unstated")),
        ("cost_per_1M_output_tokens", "USD", Slot("said", "usd_per_mtok_output")),
        ("cost_hourly", "USD", Slot("asked", "usd_per_hour")),
        ("memory_model_weights", "GiB", Slot("asked", "weights_gib")),
        ("train_tflops_per_gpu", "TFLOP/s/GPU", Slot("said", "train_tflops_per_gpu")),
    ],
)
def test_a_metric_is_told_by_its_name_and_unit(metric: str, unit: str, slot: Slot) -> None:
    assert slot_of(metric, unit) == slot


@pytest.mark.parametrize(
    ("metric", "unit"),
    [
        ("output_throughput_stddev", "tok/s"),
        ("throughput_per_MW", "tok/s/MW"),
        ("throughput_ratio", "x"),
        ("spec_memory", "GB"),
        ("http_success_rate", "%"),
    ],
)
def test_a_metric_that_nothing_holds_is_named_and_has_no_slot(metric: str, unit: str) -> None:
    (claim,) = claims({"metric": metric, "value": "5", "unit": unit})

    assert isinstance(slot_of(metric, unit), NoSlot)
    assert [(each.what, each.name, each.value) for each in claim.not_read] == [("metric", metric, f"5 {unit}")]


def test_rows_of_one_configuration_are_one_claim_that_names_its_lines() -> None:
    first, second, *_ = claims_at(TWIN)

    assert (first.lineage.place, second.lineage.place) == ("lines 2-3", "line 4")
    assert first.said.output_throughput_tok_per_s == 33.1
    assert first.latency("ttft", "mean") == pytest.approx(0.0615)
    assert (first.asked.isl, first.asked.osl, first.asked.concurrency, first.asked.request_count) == (128, 2048, 1, 30)
    assert (first.asked.precision, first.asked.tp_size, first.asked.gpu_count) == ("fp8", 1, 1)
    assert (first.asked.engine, first.asked.engine_version) == ("vllm", "0.9.2")
    assert first.kind == "measured"


def test_a_number_that_is_about_right_is_used_and_kept_as_printed() -> None:
    claim = claims_at(TWIN)[1]

    assert (claim.said.output_throughput_tok_per_s, claim.unread["output_throughput"]) == (124.0, "~124 tok/s")


def test_weights_are_gib() -> None:
    assert claims_at(TWIN)[2].asked.weights_gib == pytest.approx(70e9 / 2**30)


def test_a_range_is_no_number_and_what_is_expected_is_no_measurement() -> None:
    claim = claims_at(TWIN)[3]

    assert (claim.said.output_throughput_tok_per_s, claim.kind, claim.asked.engine_version) == (
        None,
        "expected",
        "0.9.1",
    )
    assert claim.unread["output_throughput"] == "15-20 tok/s"


@pytest.mark.parametrize(
    ("notes", "kind"),
    [
        ("as unexpected as it was", "measured"),
        ("as expected", "expected"),
        ("extrapolated from 8 GPUs", "interpolated"),
        ("projected", "expected"),
        ("estimated; not run", "expected"),
        ("aggregate of two instances", "derived"),
        ("aggregate of 8 instances", "derived"),
        ("aggregate of 8 users", "measured"),
        ("scaled linearly from one node", "derived"),
        ("scaled linearly with the load", "measured"),
        ("not estimated but measured", "measured"),
        ("higher than expected", "measured"),
        ("no estimate, yet projected", "expected"),
        ("(est.)", "expected"),
        ("at 12:00 EST, the fastest.", "measured"),
    ],
)
def test_words_of_the_notes_are_read_as_words(notes: str, kind: str) -> None:
    (claim,) = claims({"metric": "output_throughput", "value": "33", "unit": "tok/s", "notes": notes})

    assert claim.kind == kind


def test_what_ran_out_of_memory_failed_and_says_so() -> None:
    (claim,) = claims({"metric": "batch_throughput", "value": "OOM", "unit": "tok/s"})

    assert (claim.outcome, claim.said.stated_cause) == ("failed", "OOM")
    assert claim.said.unstated_throughput_tok_per_s is None


def test_a_status_in_the_notes_is_the_cause_of_a_number_that_is_missing() -> None:
    (claim,) = claims(
        {
            "metric": "output_throughput",
            "value": "N/A",
            "unit": "tok/s",
            "notes": "status=Context exceeded; printed N/A",
        }
    )

    assert (claim.outcome, claim.said.stated_cause) == ("failed", "Context exceeded")


def test_a_zero_is_a_failure() -> None:
    (claim,) = claims({"metric": "output_throughput", "value": "0", "unit": "tok/s"})

    assert [remark.code for remark in claim.remarks] == ["failed_not_zero"]
    assert claim.said.output_throughput_tok_per_s is None


@pytest.mark.parametrize(("metric", "found"), [("p50_itl", []), ("mean_itl", ["failed_not_zero"])])
def test_a_percentile_of_the_gaps_may_be_zero_since_tokens_arrive_together_and_their_mean_may_not(
    metric: str, found: list[str]
) -> None:
    (claim,) = claims({"metric": metric, "value": "0", "unit": "ms"})

    assert [remark.code for remark in claim.remarks] == found


def test_a_metric_that_stands_twice_is_two_claims_told_apart_by_their_notes() -> None:
    found = claims(
        *(
            {"metric": metric, "value": value, "unit": unit, "notes": notes}
            for notes, rate, ttft in (("at 16/s", "100", "20"), ("at 32/s", "150", "60"))
            for metric, value, unit in (("output_throughput", rate, "tok/s"), ("mean_ttft_ms", ttft, "ms"))
        )
    )

    assert [(claim.said.output_throughput_tok_per_s, claim.latency("ttft", "mean")) for claim in found] == [
        (100.0, 0.02),
        (150.0, 0.06),
    ]


def test_twins_with_the_same_notes_are_told_apart_by_their_order() -> None:
    row = {"metric": "output_throughput", "unit": "tok/s"}

    found = claims({**row, "value": "1"}, {**row, "value": "2"})

    assert [claim.said.output_throughput_tok_per_s for claim in found] == [1.0, 2.0]
    assert [claim.lineage.place for claim in found] == ["line 2", "line 3"]


@pytest.mark.parametrize(
    ("metric", "unit", "batch", "concurrency"),
    [
        ("latency_avg", "s", 64, None),
        ("throughput_gen", "tok/s", None, 64),
        ("throughput_total", "tok/s", None, None),
        ("train_tflops_per_gpu", "TFLOP/s/GPU", None, None),
    ],
)
def test_a_load_is_a_batch_or_a_concurrency_by_what_was_measured(
    metric: str, unit: str, batch: int | None, concurrency: int | None
) -> None:
    (claim,) = claims({"metric": metric, "value": "5", "unit": unit, "concurrency_or_batch": "64"})

    assert (claim.asked.batch, claim.asked.concurrency) == (batch, concurrency)


def test_a_value_that_is_no_number_is_left_out_by_name() -> None:
    (claim,) = claims({"metric": "output_throughput", "value": "fast", "unit": "tok/s"})

    assert [remark.message for remark in claim.remarks] == [
        "claims.csv line 2: output_throughput = 'fast': it is not a number"
    ]


@pytest.mark.parametrize("path", [TWIN, *TABLES], ids=folder_and_name)
def test_every_published_number_is_read(path: Path) -> None:
    with path.open(newline="", encoding="utf-8") as stream:
        count = sum(1 for _ in csv.reader(stream)) - 1

    found = claims_at(path)

    assert sorted(line for claim in found for line in _lines(claim.lineage.place)) == list(range(2, count + 2))
    assert not [remark for claim in found for remark in claim.remarks if remark.code == "unreadable_value"]


def _lines(place: str) -> list[Any]:
    found = []
    for part in place.removeprefix("lines ").removeprefix("line ").split(", "):
        low, _, high = part.partition("-")
        found += list(range(int(low), int(high or low) + 1))
    return found


@pytest.mark.parametrize(
    ("notes", "concurrency"),
    [
        ("same method as before; concurrency=Max Num Seqs", None),
        ("offline benchmark_throughput.py", None),
        ("ShareGPT, max-num-seqs=1024", 256),
        ("", 256),
    ],
)
def test_the_cap_of_an_engine_is_no_concurrency_of_a_closed_loop(notes: str, concurrency: int | None) -> None:
    row = {"metric": "output_throughput", "value": "4000", "unit": "tok/s", "concurrency_or_batch": "256"}

    (claim,) = claims(row | {"notes": notes})

    assert claim.asked.concurrency == concurrency


@pytest.mark.parametrize(
    ("metric", "value", "unit", "bound"),
    [
        (
            "output_throughput",
            "1000-1200",
            "tok/s",
            Bound("output_throughput_tok_per_s", 1000.0, 1200.0, "1000-1200 tok/s"),
        ),
        ("output_throughput", ">2,800 tok/s", "", Bound("output_throughput_tok_per_s", 2800.0, None, ">2,800 tok/s")),
        ("TTFT (ms)", "<50", "", Bound("ttft.median", None, 0.05, "<50")),
        ("mean_ttft_ms", "20-50", "", Bound("ttft.mean", 0.02, 0.05, "20-50")),
        ("output_throughput", "~900", "tok/s", Bound("output_throughput_tok_per_s", 850.0, 950.0, "~900 tok/s")),
        ("output_throughput", "~33", "tok/s", Bound("output_throughput_tok_per_s", 32.5, 33.5, "~33 tok/s")),
    ],
)
def test_a_range_a_limit_and_a_rough_number_are_bounds(metric: str, value: str, unit: str, bound: Bound) -> None:
    (claim,) = claims({"metric": metric, "value": value, "unit": unit, "concurrency_or_batch": "8"})

    assert (claim.bounds, claim.not_read, claim.asked.concurrency) == ((bound,), (), 8)


def test_a_limit_that_no_rule_holds_is_named() -> None:
    (claim,) = claims({"metric": "output_throughput", "value": "<900", "unit": "tok/s"})

    assert [each.why for each in claim.not_read] == ["it is a limit on the side on which no rule limits it"]
