"""An endpoint that answers a prompt out of a cache is found by its times alone; one that computes is not doubted."""

import pytest

from tests.flows.conftest import NightFixture
from tests.flows.test_endpoint import SUITE, findings_of, measure, row_of
from tests.meter.conftest import StartTruth, start_truth

pytestmark = pytest.mark.usefixtures("calibrated", "nights_without_prefect")

__all__ = ["start_truth"]  # a fixture
REPEATED = SUITE.replace('{{ form = "{form}" }}', '{{ kind = "repeated", form = "chat" }}')
LONGER = REPEATED.replace("request_count = 12", "request_count = 30")


@pytest.mark.parametrize(("fault", "is_found"), [("hosted", False), ("hosted,caches_answers", True)])
def test_an_endpoint_that_answers_out_of_a_cache_is_found_with_the_size(
    house: NightFixture, start_truth: StartTruth, fault: str, *, is_found: bool
) -> None:
    truth = start_truth(fault, ttft_ms=20, itl_ms=5)
    house.suite.write_text(LONGER.format(known=""))

    measure(house, truth.url, house.suite)

    assert (findings_of(house)["cached_outputs"] == "FAIL") == is_found
    (share,) = row_of(house, "repeated_generation_share")
    assert isinstance(share, float)
    assert (share < 0.5) == is_found
