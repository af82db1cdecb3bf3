"""Requests that the client cancels do not count as failed, and a server that computes them all the same is found."""

import pytest

from tests.flows.conftest import NightFixture
from tests.flows.test_endpoint import SUITE, findings_of, measure, row_of
from tests.meter.conftest import StartTruth, start_truth

pytestmark = pytest.mark.usefixtures("calibrated", "nights_without_prefect")

__all__ = ["start_truth"]  # a fixture
# An answer takes 1.3 seconds, and is cancelled after a tenth of a second at the earliest.
CANCELLING = SUITE.replace("osl = 8", "osl = 64").replace(
    "warmup_count = 1", "warmup_count = 1\ncancel = {{ share = 0.5, after_s = [0.1, 0.4] }}"
)


@pytest.mark.parametrize(("fault", "is_found"), [("", False), ("ignores_cancel", True)])
def test_a_server_that_ignores_cancelled_requests_is_found(
    house: NightFixture, start_truth: StartTruth, fault: str, *, is_found: bool
) -> None:
    truth = start_truth(fault, ttft_ms=20, itl_ms=20)
    house.suite.write_text(CANCELLING.format(form="tokens", known="").replace("concurrency = 1", "concurrency = 2"))

    measure(house, truth.url, house.suite)

    assert (findings_of(house)["cancel_ignored"] == "FAIL") == is_found
    completed, failed, cancelled = row_of(house, "completed", "failed", "cancelled")
    assert isinstance(completed, int)
    assert isinstance(cancelled, int)
    assert (completed + cancelled, failed) == (12, 0)
    assert 0 < cancelled < 12
    found = findings_of(house)
    assert {code: found[code] for code in ("failure_rate", "server_errors", "token_count_drift")} == dict.fromkeys(
        ("failure_rate", "server_errors", "token_count_drift"), "PASS"
    )
