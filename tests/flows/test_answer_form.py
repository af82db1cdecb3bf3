"""A grammar that the engine refuses is a sentence, and answers of another form reject their run."""

from pathlib import Path

import pytest

from tests.flows.conftest import NightFixture
from tests.flows.test_endpoint import SUITE, findings_of, measure, record_of
from tests.meter.conftest import StartTruth, start_truth
from warehouse.lake.query import run_sql

pytestmark = pytest.mark.usefixtures("calibrated", "nights_without_prefect")

__all__ = ["start_truth"]  # a fixture


def _suite(house: NightFixture, answers: str) -> Path:
    text = SUITE.format(form="text", known="").replace("warmup_count = 1", f"warmup_count = 1\nanswers = {answers}")
    house.suite.write_text(text)
    return house.suite


def test_a_refused_grammar_is_a_failed_run_with_a_sentence(house: NightFixture, start_truth: StartTruth) -> None:
    truth = start_truth("")
    answers = "{ grammar = 'start: nothing', pattern = 'x', pair = false }"

    night = measure(house, truth.url, _suite(house, answers))

    record, _ = record_of(house, night)
    assert record.outcome == "failed"
    assert record.reason is not None
    assert "the engine refused every request with answers.grammar: HTTP 400: " in record.reason
    assert "Invalid grammar specification." in record.reason


def test_answers_of_another_form_reject_the_run_and_not_its_free_twin(
    house: NightFixture, start_truth: StartTruth
) -> None:
    truth = start_truth("")

    measure(house, truth.url, _suite(house, "{ grammar = 'root ::= \"yes\"', pattern = 'yes' }"))

    assert findings_of(house)["answers_invalid"] == "FAIL"
    rows = run_sql(house.data, "SELECT scenario, valid_answer_share, first_use_ttft_ms > 0 FROM measurements").rows
    assert sorted(tuple(row) for row in rows) == [("one", 0.0, True), ("one-free", None, None)]
