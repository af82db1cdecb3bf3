"""Send a running server the fixed questions of bench/quality/passage.py, one at a time and without other load."""

import http.client
import json
from collections.abc import Sequence
from typing import Any

from bench.errors import UnreadableResultError
from bench.quality import answers
from bench.quality.answers import Body
from bench.quality.passage import PROMPTS
from bench.record import Answers
from infra.engines import server
from infra.engines.server import RunningServer


def ask(running: RunningServer, model: str) -> Answers:
    """The server's answers now. Never raises: a missing answer is None, and `lacking` has the reason.

    After a refused question the next one is sent; after a connection error or a timeout, none.
    """
    found: dict[str, Any] = {}
    reasons: list[str] = []
    for read in (_passage, _greedy):
        try:
            found |= read(running, model)
        except UnreadableResultError as error:
            reasons.append(str(error))
        except OSError as error:
            reasons.append(f"the server does not answer ({error})")
            break
    return Answers(**found, lacking="; ".join(reasons) or None)


def _passage(running: RunningServer, model: str) -> dict[str, Any]:
    mean, count = answers.read_logprobs(_answer(running, answers.ask_passage(model)))
    return {"logprob_mean": mean, "logprob_tokens": count}


def _greedy(running: RunningServer, model: str) -> dict[str, Any]:
    bodies = [answers.ask_greedy(model, prompt) for prompt in PROMPTS]
    return {"greedy": tuple(answers.read_greedy(_answer(running, body)) for body in bodies)}


def _answer(running: RunningServer, body: Body) -> str:
    status, text = server.ask(running, "POST", "/v1/completions", json.dumps(body), server.COMPLETION_TIMEOUT_S)
    if status != http.client.OK:
        raise UnreadableResultError(f"the server answered with HTTP status {status}: {text[:300]}")
    return text


def adapters_like_base(running: RunningServer, model: str, adapters: Sequence[str]) -> tuple[str, ...] | None:
    """The adapters whose greedy answers are exactly those of the base model; None where one of them does not answer."""

    def greedy(name: str) -> list[tuple[int, ...]]:
        return [answers.read_greedy(_answer(running, answers.ask_greedy(name, prompt))) for prompt in PROMPTS[:2]]

    try:
        base = greedy(model)
        return tuple(name for name in adapters if greedy(name) == base)
    except (UnreadableResultError, OSError):
        return None
