"""aiperf's time slices and raw records: held against the report beside them, and read where they are alone."""

import json
from pathlib import Path
from typing import Any

import pytest

from bench.audit.claim import Claim
from tests.warehouse.importers.reading import alarms, claims_at, claims_of

RUN = Path(__file__).parents[2] / "data/peers/aiperf-closed"
REPORT, SLICES = "profile_export_aiperf.json", "profile_export_aiperf_timeslices.json"
SECOND = 10**9


def failures(claims: list[Claim]) -> set[str]:
    return {each.split()[1].rstrip(":") for each in alarms(claims) if each.startswith("FAIL")}


def packet(value: Any) -> dict[str, Any]:
    return {"name": "data", "value": value if isinstance(value, str) else json.dumps(value)}


def raw(**more: Any) -> str:
    """A raw record: the role after 0.1 s, tokens after 0.2, 0.3 and 0.5 s, then the usage."""
    texts = ("", "a", "b", "c")
    events: list[Any] = [{"choices": [{"delta": {"role": "assistant", "content": text}}]} for text in texts]
    sent: list[tuple[float, Any]] = [(0.1, events[0]), (0.2, events[1]), (0.3, events[2]), (0.5, events[3])]
    sent += [(0.6, {"choices": [], "usage": {"prompt_tokens": 64, "completion_tokens": 3}}), (0.6, "[DONE]")]
    record = {
        "metadata": {"benchmark_phase": "profiling", "request_start_ns": 5 * SECOND, "was_cancelled": False},
        "start_perf_ns": 7 * SECOND,
        "request_headers": {},
        "status": 200,
        "responses": [{"perf_ns": 7 * SECOND + int(at * SECOND), "packets": [packet(each)]} for at, each in sent],
        "payload": {"model": "m", "max_tokens": 3, "ignore_eos": True},
    }
    return json.dumps(record | more) + "\n"


def test_slices_add_up_to_the_report_beside_them() -> None:
    (claim,) = claims_at(RUN / REPORT)
    (report, slices) = ((RUN / name).read_text() for name in (REPORT, SLICES))
    missing = json.loads(slices)
    missing["timeslices"].pop()

    (spoiled,) = claims_of(REPORT, report, **{SLICES: json.dumps(missing)})

    assert not failures([claim])
    assert failures([spoiled]) == {"sum_mismatch"}


def test_slices_alone_are_measurements_of_their_own() -> None:
    text = (RUN / SLICES).read_text()
    every = claims_of(SLICES, text)
    twice = json.loads(text)
    twice["timeslices"][0]["output_token_throughput"]["avg"] *= 2

    assert sum(claim.said.completed or 0 for claim in every) == 16
    assert [claim.said.duration_s for claim in every] == pytest.approx([1.0] * len(every))
    assert {claim.asked.model for claim in every} == {"truth"}
    assert not failures(every)
    assert failures(claims_of(SLICES, json.dumps(twice))) == {"derived_mismatch"}


def test_a_request_that_outlives_its_slice_is_no_latency_of_it() -> None:
    slices = json.loads((RUN / SLICES).read_text())
    slices["timeslices"][0]["request_latency"]["max"] = 1200.0

    first, second = claims_of(SLICES, json.dumps(slices))[:2]

    assert not first.latency_s.get("e2el")
    assert second.latency_s["e2el"]["mean"] > 0


def test_raw_records_alone_are_a_run_of_requests() -> None:
    warmup = {"benchmark_phase": "warmup", "request_start_ns": SECOND, "was_cancelled": False}
    text = raw(metadata=warmup) + raw() + raw(status=500, responses=[])

    (claim,) = claims_of("profile_export_raw.jsonl", text)

    assert (claim.said.completed, claim.said.failed, claim.asked.warmup_count) == (1, 1, 1)
    assert (claim.asked.model, claim.asked.osl) == ("m", 3)
    assert (claim.said.total_input_tokens, claim.said.total_output_tokens) == (64, 3)
    assert claim.said.duration_s == pytest.approx(0.5)
    assert claim.series is not None
    assert claim.series.ttft_s is not None
    assert claim.series.ttft_s[0] == pytest.approx(0.2)
    assert claim.series.gap_s == pytest.approx([0.1, 0.2])
