"""The latency identity of each request."""

from dataclasses import replace

import numpy as np

from bench import evidence_columns as ev
from bench.audit.claim import RequestSeries
from bench.audit.evidence.evidence import Observed
from bench.audit.evidence.latency import e2el_identity, sums_of_means
from bench.audit.evidence.successful import SuccessfulRequests
from tests.bench.claims import changed


def test_a_short_request_may_miss_its_latency_by_a_millisecond() -> None:
    ttft_s, gap_s, off_s = 0.010, 0.010, np.array([0.0009, -0.0009, 0.0011, -0.0011])
    series = RequestSeries(
        ttft_s=np.full(4, ttft_s), e2el_s=ttft_s + gap_s + off_s, gap_s=np.full(4, gap_s), gap_at=np.arange(5)
    )
    claim = changed(series=series)

    (found,) = e2el_identity(claim, SuccessfulRequests(claim)).values()

    assert isinstance(found, Observed)
    assert found.value == 0.5


def test_the_means_of_unequal_answers_are_added_only_where_no_request_is_known() -> None:
    tokens, tpot_s = np.array([3, 3, 3, 33]), np.array([0.1, 0.1, 0.1, 0.01])
    ttft_s = np.full(4, 0.05)
    series = RequestSeries(ttft_s=ttft_s, e2el_s=ttft_s + tpot_s * (tokens - 1), output_tokens=tokens)
    latency_s = {"ttft": {"mean": 0.05}, "tpot": {"mean": 0.0775}, "e2el": {"mean": 0.28}}
    lengths = {"has_fixed_lengths": False}
    stated = changed(lengths, {"total_output_tokens": 42, "completed": 4}, latency_s=latency_s)
    known = replace(stated, series=series)

    assert ev.TPOT_LOOSE_REL not in sums_of_means(known, SuccessfulRequests(known))
    found = sums_of_means(stated, SuccessfulRequests(stated))[ev.TPOT_LOOSE_REL]
    assert isinstance(found, Observed)
    assert found.value > 0.5
