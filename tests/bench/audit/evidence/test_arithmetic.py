"""Statistics that are stated, against the same ones of the requests."""

import numpy as np
import pytest

from bench.audit.claim import Claim, ClaimSource, RequestSeries
from bench.audit.evidence.arithmetic import statistics_again
from bench.audit.evidence.evidence import Observed
from bench.audit.evidence.successful import SuccessfulRequests

TOKENS = np.array([2, 3, 11, 101], dtype=np.int64)
TPOT_S = np.array([0.04, 0.03, 0.02, 0.01])
BY_TOKEN = np.repeat(TPOT_S, TOKENS - 1)


def apart(**stated: float) -> float:
    """How far the statistic of TPOT that is furthest off is from those of the requests."""
    series = RequestSeries(output_tokens=TOKENS, e2el_s=np.full(4, 9.0), ttft_s=np.full(4, 0.1), tpot_s=TPOT_S)
    claim = Claim(ClaimSource("f", "", "", "guidellm", 1), latency_s={"tpot": stated}, series=series)
    (found,) = statistics_again(claim, SuccessfulRequests(claim)).values()
    assert isinstance(found, Observed)
    return found.value


@pytest.mark.parametrize("samples", [TPOT_S, BY_TOKEN], ids=["by request", "by token"])
@pytest.mark.parametrize("statistic", ["mean", "std", "median", "p25", "p90"])
def test_a_tpot_that_the_client_timed_is_held_to_by_request_and_by_token(statistic: str, samples: np.ndarray) -> None:
    of = {"mean": samples.mean(), "std": samples.std()}
    q = {"median": 50, "p25": 25, "p90": 90}.get(statistic, 0)
    stated = float(of[statistic] if statistic in of else np.percentile(samples, q, method="inverted_cdf"))

    assert apart(**{statistic: stated}) == pytest.approx(0.0, abs=1e-9)
    assert apart(**{statistic: stated * 7}) > 0.02
