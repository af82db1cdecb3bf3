"""Requests spread over LoRA adapters, and an adapter in whose place the base model answers is found."""

import pytest

from bench.suite.suite import Suite
from infra.loadgen.suite_file import parse_suite_file
from tests.flows.conftest import NightFixture
from tests.flows.test_endpoint import SUITE, findings_of, measure, row_of
from tests.meter.conftest import StartTruth, start_truth

pytestmark = pytest.mark.usefixtures("calibrated", "nights_without_prefect")

__all__ = ["start_truth"]  # a fixture
ADAPTED = SUITE.replace("warmup_count = 1", 'warmup_count = 2\nadapters = ["news", "code"]').replace("= 12", "= 40")


@pytest.mark.parametrize(("fault", "alike"), [("", []), ("adapter_missing", ["code"])])
def test_an_adapter_in_whose_place_the_base_model_answers_is_found(
    house: NightFixture, start_truth: StartTruth, fault: str, alike: list[str]
) -> None:
    truth = start_truth(fault, "--lora-modules", "news=/adapters/news", "code=/adapters/code")
    house.suite.write_text(ADAPTED.format(form="tokens", known=""))

    measure(house, truth.url, house.suite)

    assert findings_of(house)["adapter_missing"] == ("FAIL" if alike else "PASS")
    used, top, found = row_of(house, "adapters_used", "adapter_top_share", "adapters_like_base")
    assert (used, found) == (2, alike)
    assert isinstance(top, float)
    assert 0.5 <= top < 0.95  # of two, drawn by Zipf's law: two thirds, give or take a few of 40 requests


def test_an_adapter_that_the_server_does_not_know_is_a_sentence(house: NightFixture, start_truth: StartTruth) -> None:
    truth = start_truth("", "--lora-modules", "news=/adapters/news")
    house.suite.write_text(ADAPTED.format(form="tokens", known=""))

    measure(house, truth.url, house.suite)

    outcome, reason = row_of(house, "outcome", "reason")
    assert outcome == "failed"
    assert "does not serve 'code'; it serves small, news." in str(reason)


def test_a_suite_reads_its_adapters(house: NightFixture) -> None:
    house.suite.write_text(ADAPTED.format(form="tokens", known=""))

    suite: Suite = parse_suite_file(house.suite)[0]

    assert suite.scenarios[0].adapters == ("news", "code")
