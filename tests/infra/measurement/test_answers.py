import os
import signal
from collections.abc import Iterator

import pytest

from bench.engines import prometheus
from bench.engines.by_name import ENGINES
from bench.quality import passage
from bench.quality.answers import GREEDY_TOKENS, NOT_A_NUMBER
from infra.engines import server
from infra.engines.launch import ServerRequest
from infra.engines.server import RunningServer
from infra.measurement import answers
from infra.processes import detached
from tests.infra.benches import pid_of
from tests.infra.engines.test_server import quiet, what, with_fault

__all__ = ["what"]
QUESTIONS = 1 + len(passage.PROMPTS)
MODEL = "small"


@pytest.fixture
def running(what: ServerRequest) -> Iterator[RunningServer]:
    found = server.bring_up(what, quiet)
    yield found
    server.stop(found)


def test_a_server_asked_twice_says_the_same(running: RunningServer) -> None:
    first, second = answers.ask(running, MODEL), answers.ask(running, MODEL)

    assert first == second
    assert (first.lacking, [len(tokens) for tokens in first.greedy]) == (None, [GREEDY_TOKENS] * len(passage.PROMPTS))
    assert first.logprob_mean is not None
    assert NOT_A_NUMBER < first.logprob_mean < 0
    assert first.logprob_tokens == 107  # the truth server has a token a word, and the first one is not predicted


def test_the_server_counts_what_it_is_asked_like_any_other_request(running: RunningServer) -> None:
    engine = ENGINES["vllm"]
    before = engine.counters(server.metrics(running))

    answers.ask(running, MODEL)

    deltas = prometheus.deltas(before, engine.counters(server.metrics(running)))
    assert deltas["request_success_total"] == QUESTIONS
    assert deltas["generation_tokens_total"] == 1 + len(passage.PROMPTS) * GREEDY_TOKENS


def test_numerics_that_change_are_seen_in_both_answers(what: ServerRequest) -> None:
    running = server.bring_up(with_fault(what, f"numerics:{QUESTIONS + 1}"), quiet)

    before, after = answers.ask(running, MODEL), answers.ask(running, MODEL)

    server.stop(running)
    assert before.logprob_mean is not None
    assert after.logprob_mean == pytest.approx(before.logprob_mean - 0.25)
    assert after.greedy != before.greedy


def test_a_server_that_tells_no_log_probabilities_still_has_a_fingerprint(what: ServerRequest) -> None:
    running = server.bring_up(with_fault(what, "no_logprobs"), quiet)

    found = answers.ask(running, MODEL)

    server.stop(running)
    assert (found.logprob_mean, len(found.greedy)) == (None, len(passage.PROMPTS))
    assert "returned no log-probabilities" in str(found.lacking)


def test_a_refusal_is_told_in_the_servers_own_words(running: RunningServer) -> None:
    found = answers.ask(running, "another")

    assert (found.logprob_mean, found.greedy) == (None, ())
    assert str(found.lacking).count("The model `another` does not exist") == 2


def test_a_server_that_is_gone_is_asked_once_and_raises_nothing(running: RunningServer) -> None:
    os.killpg(pid_of(running), signal.SIGKILL)
    detached.end_session(pid_of(running), patience_s=5)

    found = answers.ask(running, MODEL)

    assert found.greedy == ()
    assert str(found.lacking).count("the server does not answer") == 1
