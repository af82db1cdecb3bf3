"""The first requests to a server: short streams, which show what it takes, and whether a connection outlives one.

llama.cpp's server announces `Keep-Alive` and closes a stream's connection all the same. A client that sends its next
request there loses every second one.
"""

import http.client
import json
import select
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from bench.suite.scenario import Scenario
from infra.engines.http_client import Origin

LIVES_S = 0.05  # a server that closes the connection has done so by then
COMPLETIONS, EMBEDDINGS = "/v1/completions", "/v1/embeddings"


@dataclass(frozen=True)
class FirstAnswer:
    """Status, text and headers of the answer, its seconds, and whether the connection was open LIVES_S after it."""

    status: int
    text: str
    keeps_connection: bool
    took_s: float
    headers: Mapping[str, str] = field(default_factory=dict)


def probe(origin: Origin, scenario: Scenario, timeout_s: float) -> FirstAnswer:
    """Stream two tokens, or embed a text where a scenario does; OSError if there is no complete answer in time."""
    model = scenario.model.name
    if scenario.workload.is_embedding:
        return send(origin, EMBEDDINGS, {"model": model, "input": "ready?"}, timeout_s)
    return stream_once(origin, model, timeout_s)


def stream_once(origin: Origin, model: str, timeout_s: float) -> FirstAnswer:
    """Stream two tokens of a completion; OSError if there is no complete answer in time."""
    body = {"model": model, "prompt": "ready?", "max_tokens": 2, "temperature": 0.0, "ignore_eos": True, "stream": True}
    return send(origin, COMPLETIONS, body, timeout_s)


def send(origin: Origin, path: str, body: Mapping[str, object], timeout_s: float) -> FirstAnswer:
    """Send one request and read all of its answer; OSError if there is no complete answer in time."""
    began = time.monotonic()
    answer, is_open = origin.send("POST", path, json.dumps(body), timeout_s, _is_open)
    took_s = max(0.0, time.monotonic() - began - (LIVES_S if is_open else 0.0))  # an open connection was looked at
    headers = {name.lower(): value for name, value in answer.headers}
    return FirstAnswer(answer.status, origin.text_of(answer), is_open, took_s, headers)


def _is_open(connection: http.client.HTTPConnection) -> bool:
    """Whether the server keeps a connection; http.client closes its side where the answer says that the server will."""
    return connection.sock is not None and not select.select([connection.sock], [], [], LIVES_S)[0]
