"""Nights of embeddings: what they do not have is NULL, and a server that counts or answers wrongly is found."""

import pytest

from tests.flows.conftest import ABOUT_SPEED, NightFixture, run_nightly
from tests.flows.test_endpoint import SUITE, findings_of, measure, row_of
from tests.meter.conftest import StartTruth, start_truth
from warehouse.lake.query import run_sql

pytestmark = pytest.mark.usefixtures("calibrated", "nights_without_prefect")

__all__ = ["start_truth"]  # a fixture
POOLING = ("--runner", "pooling")
EMBEDDED = SUITE.replace("osl = 8", 'task = "embed"').format(form="tokens", known="")
NOT_OF_VECTORS = (
    *("osl", "ttft_p50_ms", "tpot_p50_ms", "itl_p50_ms", "total_output_tokens", "output_throughput_tok_per_s"),
    *("steady_output_throughput_tok_per_s", "usd_per_mtok_output", "tokens_per_event", "ttft_histogram"),
)


def test_a_night_of_embeddings_has_no_output_tokens(house: NightFixture) -> None:
    suite = house.write_suite().read_text().partition("[[scenarios]]")
    flags = suite[0].replace("flags = [", f'flags = ["{POOLING[0]}", "{POOLING[1]}", ')
    house.suite.write_text(flags + EMBEDDED.partition("[[scenarios]]")[1] + _scenario())

    run_nightly(house)

    assert row_of(house, "outcome", "reason", "task", "completed", "failed") == ("measured", None, "embed", 12, 0)
    assert row_of(house, *NOT_OF_VECTORS) == (None,) * len(NOT_OF_VECTORS)
    assert row_of(house, "embedding_dimensions", "total_input_tokens", "server_prompt_tokens") == (8, 192, 208)
    assert row_of(
        house,
        "abs(input_throughput_tok_per_s / (16 * request_throughput_per_s) - 1) < 1e-9",
        "e2el_p50_ms > 19",
    ) == (True, True)
    doubts = run_sql(house.data, "SELECT DISTINCT code FROM findings WHERE status IN ('WARN', 'FAIL')").rows
    assert {row[0] for row in doubts} <= ABOUT_SPEED
    (checked,) = run_sql(house.data, "SELECT ev_not_checkable FROM measurements").rows
    assert tuple(checked) == (0,)


def _scenario() -> str:
    return EMBEDDED.partition("[[scenarios]]")[2].partition("[endpoint]")[0]


def test_unusable_vectors_and_prompt_tokens_that_nobody_sent_are_found(
    house: NightFixture, start_truth: StartTruth
) -> None:
    truth = start_truth("odd_vectors:3,miscount", *POOLING)
    house.suite.write_text(EMBEDDED)

    measure(house, truth.url, house.suite)

    found = findings_of(house)
    assert (found["embeddings_unusable"], found["prompt_count_drift"]) == ("FAIL", "FAIL")
    assert row_of(house, "verdict", "completed", "round(ev_odd_vector_share, 2)") == ("rejected", 12, 0.33)


def test_a_server_that_gives_no_vectors_is_a_sentence(house: NightFixture) -> None:
    base = house.write_suite().read_text().partition("[[scenarios]]")[0]
    house.suite.write_text(base + "[[scenarios]]" + _scenario())

    run_nightly(house)

    outcome, reason = row_of(house, "outcome", "reason")
    assert outcome == "failed"
    assert "the first embedding failed with HTTP status 404" in str(reason)
