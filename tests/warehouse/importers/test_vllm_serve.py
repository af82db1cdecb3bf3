import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.audit.claim import Claim
from bench.errors import UnreadableResultError
from tests.data.formats.vllm_serve.make import plain, short_run
from tests.warehouse.importers.reading import FORMATS, SAMPLES, at_hand, claims_at, claims_of

TWINS = FORMATS / "vllm_serve"
REAL = Path(__file__).parents[2] / "data/vllm-results"


def changed(**values: Any) -> Claim:
    """The claim of the detailed twin with some of its fields replaced."""
    result = json.loads((TWINS / "detailed.json").read_text())
    (claim,) = claims_of("run.json", json.dumps({**result, **values}))
    return claim


def codes(claim: Claim) -> list[str]:
    return [remark.code for remark in claim.remarks]


def test_milliseconds_become_seconds_and_rates_stay() -> None:
    run = short_run(1)

    (claim,) = claims_at(TWINS / "detailed.json")

    assert claim.latency("ttft", "median") == pytest.approx(np.median(run.ttft_s))
    assert claim.latency("e2el", "p99") == pytest.approx(np.percentile(run.e2el_s, 99))
    assert (claim.said.completed, claim.said.failed, claim.said.total_output_tokens) == (640, 0, 5120)
    assert claim.said.output_throughput_tok_per_s == pytest.approx(run.output_tok_per_s)
    assert (claim.asked.model, claim.asked.concurrency, claim.asked.tp_size) == ("example/dense-8b", 2, 1)
    assert (claim.asked.request_rate_per_s, claim.asked.is_open_loop) == (None, False)
    assert claim.remarks == ()


def test_arrays_are_seconds_and_gaps_lie_end_to_end() -> None:
    run, series = short_run(1), claims_at(TWINS / "detailed.json")[0].series

    assert series is not None
    assert series.gap_s is not None
    assert series.gap_at is not None
    assert series.e2el_s == pytest.approx(run.e2el_s)
    assert (len(series.gap_s), series.gap_at[:3].tolist()) == (640 * 7, [0, 7, 14])
    assert series.gap_s[7:14] == pytest.approx(np.full(7, run.tpot_s[1]))


def test_an_older_result_has_no_failures_and_no_series() -> None:
    (claim,) = claims_at(TWINS / "older.json")

    assert (claim.said.failed, claim.series, claim.asked.engine) == (None, None, "vllm")
    assert "e2el" not in claim.latency_s
    assert {"best_of", "use_beam_search"} <= set(claim.unread)


def test_each_appended_line_is_a_claim_that_names_its_line() -> None:
    assert [claim.lineage.place for claim in claims_at(TWINS / "appended.jsonl")] == ["line 1", "line 2"]


def test_a_line_that_is_cut_off_is_named() -> None:
    text = (TWINS / "appended.jsonl").read_text()

    with pytest.raises(UnreadableResultError, match=r"run\.jsonl line 2 column \d+"):
        claims_of("run.jsonl", text[:-20])


def test_the_rust_client_is_known_by_its_keys() -> None:
    (claim,) = claims_at(TWINS / "rust.json")

    assert (claim.lineage.tool, claim.asked.max_model_len) == ("vllm-rs bench serve", 4096)
    assert claim.said.input_throughput_tok_per_s == pytest.approx(short_run(5).input_tok_per_s)


def test_failures_that_are_only_named_are_counted() -> None:
    result = plain(short_run(1))
    del result["failed"]

    (claim,) = claims_of("run.json", json.dumps({**result, "failed_requests": [{"index": 3, "error": "HTTP 500"}]}))

    assert claim.said.failed == 1


def test_a_failed_request_has_no_times_though_the_file_says_zero() -> None:
    result = json.loads((TWINS / "detailed.json").read_text())
    for name, value in (("errors", "HTTP 500"), ("ttfts", 0.0), ("latencies", 0.0)):
        result[name][3] = value

    series = claims_of("run.json", json.dumps(result))[0].series

    assert series is not None
    assert series.is_ok is not None
    assert series.ttft_s is not None
    assert series.e2el_s is not None
    assert np.flatnonzero(~series.is_ok).tolist() == [3]
    assert np.flatnonzero(np.isnan(series.ttft_s)).tolist() == [3]
    assert np.flatnonzero(np.isnan(series.e2el_s)).tolist() == [3]


@pytest.mark.parametrize("name", ["duration", "output_throughput", "mean_ttft_ms", "mean_tpot_ms", "mean_itl_ms"])
def test_a_zero_of_what_can_only_be_positive_is_a_failure(name: str) -> None:
    claim = changed(**{name: 0.0})

    assert codes(claim) == ["failed_not_zero"]
    assert name in claim.remarks[0].message


def test_answers_of_one_token_have_no_tpot_and_that_is_no_failure() -> None:
    claim = changed(total_output_tokens=640, mean_tpot_ms=0.0, median_tpot_ms=0.0, p99_tpot_ms=0.0)

    assert claim.latency("tpot", "mean") is None
    assert claim.remarks == ()


def test_an_open_loop_is_told_by_its_rate() -> None:
    asked = changed(request_rate=4.5, max_concurrency=None).asked

    assert (asked.request_rate_per_s, asked.is_open_loop, asked.concurrency) == (4.5, True, None)


@pytest.mark.parametrize("name", ["ttfts", "itls", "errors", "latencies", "start_times", "input_lens"])
def test_an_array_of_another_length_is_left_out_by_name(name: str) -> None:
    result = json.loads((TWINS / "detailed.json").read_text())

    claim = changed(**{name: result[name][:-1]})

    assert codes(claim) == ["unreadable_value"]
    assert claim.remarks[0].message == f"run.json: {name} has 639 entries but the other arrays have 640; ignored"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ttfts", ["x"] * 640),
        ("itls", [0.1] * 640),
        ("itls", [[None]] * 640),
        ("itls", [["x"]] * 640),
        ("output_lens", [1.5] * 640),
    ],
)
def test_an_array_of_something_else_is_left_out_by_name(name: str, value: Any) -> None:
    claim = changed(**{name: value})

    assert codes(claim) == ["unreadable_value"]
    assert name in claim.remarks[0].message


def test_empty_arrays_are_no_series() -> None:
    empty: dict[str, Any] = {name: [] for name in ("input_lens", "output_lens", "ttfts", "itls", "latencies", "errors")}

    assert changed(**empty, start_times=[]).series is None


def test_nan_is_left_out_by_name() -> None:
    claim = changed(median_ttft_ms=float("nan"))

    assert codes(claim) == ["unreadable_value"]
    assert claim.latency("ttft", "median") is None
    assert claim.latency("ttft", "mean") is not None


@pytest.mark.parametrize("name", ["vllm_bench_serve.json", "vllm_rs_bench_serve.json"])
def test_a_real_result_says_what_its_arrays_say(name: str) -> None:
    (claim,) = claims_at(REAL / name)

    assert claim.series is not None
    assert claim.series.ttft_s is not None
    assert claim.latency("ttft", "mean") == pytest.approx(claim.series.ttft_s.mean())
    assert (claim.said.completed, claim.asked.concurrency, claim.remarks) == (16, 4, ())


@pytest.mark.parametrize(
    ("name", "digest"),
    [
        ("vllm_bench_serve.json", "ad7348a835f32eeb1391048a16719faa5a8fd2778a528b69e1048c5eff9a916e"),
        ("vllm_rs_bench_serve.json", "020163e96e176e9042da8dd66270ec78bf0fcbf38fcabe5428e160e01fa147d0"),
    ],
)
def test_a_real_result_is_as_its_tool_wrote_it(name: str, digest: str) -> None:
    copies = at_hand(REAL / name, SAMPLES / name)

    assert {hashlib.sha256(path.read_bytes()).hexdigest() for path in copies} == {digest}


def test_metadata_is_read_by_the_keys_of_a_context_file() -> None:
    claim = changed(
        precision="fp8", isl="256", usd_per_hour="2.59", prefix_caching="false", tp="4", weights_source="log"
    )

    asked = claim.asked
    assert (asked.precision, asked.isl, asked.usd_per_hour, asked.prefix_caching) == ("fp8", 256.0, 2.59, False)
    # What the result itself says stays.
    assert asked.tp_size == 1
    assert claim.remarks == ()


def test_goodput_is_read_under_both_of_its_keys() -> None:
    assert changed(request_goodput=1.5).said.goodput_per_s == 1.5
    assert changed(**{"request_goodput": None, "request_goodput:": 0.0}).said.goodput_per_s == 0.0


def test_the_date_in_a_name_is_held_against_the_one_in_the_file() -> None:
    text = json.dumps(plain(short_run(1)))

    (claim,) = claims_of("openai-infqps-dense-8b-20260919-031500.json", text)

    (pair,) = claim.pairs
    assert (pair.what, pair.claimed, pair.observed) == ("timestamp", "20260919-031500", "20260921-031500")
    assert claims_of("rust.json", (TWINS / "rust.json").read_text())[0].said.ended_at_s == 1_789_960_500.0


@pytest.mark.parametrize(
    ("backend", "engine"), [("sglang-oai", "sglang"), ("vllm-chat", "vllm"), ("openai-chat", None)]
)
def test_the_engine_is_that_of_the_backend_whatever_form_its_requests_have(backend: str, engine: str | None) -> None:
    assert changed(backend=backend).asked.engine == engine
