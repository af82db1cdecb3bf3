"""Embeddings through the meter: one event an answer, no tokens, and each way an answer can be none."""

import pytest

from meter.embeddings import is_usable, vector_of
from tests.meter.conftest import RunMeter, StartTruth

PATH = "/v1/embeddings"


def test_an_embedding_is_one_event_and_has_no_output_tokens(start_truth: StartTruth, run_meter: RunMeter) -> None:
    truth = start_truth("odd_vectors:3", "--runner", "pooling")

    report = run_meter(truth.url, path=PATH, load={"kind": "closed", "concurrency": 1}, extra_body={})

    rows = report.rows
    assert report.outcomes == ["ok"] * 6
    assert [row["kinds"] for row in rows] == [["embedding"]] * 6
    assert [row["answer_is_valid"] for row in rows] == [True, True, False] * 2
    names = ("prompt_tokens_counted", "dimensions", "output_tokens_planned", "output_tokens_counted", "tokens_by")
    assert {tuple(row[name] for name in names) for row in rows} == {(16, 8, None, None, None)}
    assert {row["first_token_at_ns"] for row in rows} == {None}
    assert all(0 < row["first_event_at_ns"] <= row["done_at_ns"] for row in rows)


def test_a_server_of_text_has_no_embeddings(start_truth: StartTruth, run_meter: RunMeter) -> None:
    report = run_meter(start_truth().url, path=PATH, extra_body={})

    assert set(report.outcomes) == {"http"}


def test_embeddings_of_a_chat_are_refused(run_meter: RunMeter) -> None:
    prompts = {"kind": "random", "form": "chat", "input_tokens": 16, "seed": 1}

    report = run_meter("http://127.0.0.1:1", path=PATH, prompts=prompts)

    assert report.exit_code == 2
    assert "Embeddings are of prompts as tokens or text" in report.stderr


@pytest.mark.parametrize("body", [{}, {"data": []}, {"data": [{"embedding": "AAAA"}]}, {"data": [{}, {}]}, {"data": 1}])
def test_what_is_no_vector_is_none(body: dict[str, object]) -> None:
    assert vector_of(body) is None


@pytest.mark.parametrize(
    ("vector", "usable"),
    [([0.5, -1], True), ([0.0, 0.0], False), ([float("nan"), 1.0], False), ([True], False), ([], False)],
)
def test_a_vector_needs_a_direction(vector: list[object], *, usable: bool) -> None:
    assert is_usable(vector) == usable
