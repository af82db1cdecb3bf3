"""The latency identity of each request."""

import numpy as np

from bench.audit.claim import RequestSeries
from bench.audit.evidence.evidence import Observed
from bench.audit.evidence.latency import e2el_identity
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
