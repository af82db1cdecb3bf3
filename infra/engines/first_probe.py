"""The first request to a server: one streamed completion, which shows whether a connection outlives its answer.

llama.cpp's server announces `Keep-Alive` and closes a stream's connection all the same. A client that sends its next
request there loses every second one.
"""

import http.client
import json
import select
from dataclasses import dataclass

LIVES_S = 0.05  # a server that closes the connection has done so by then


@dataclass(frozen=True)
class FirstAnswer:
    """Status and text of the answer, and whether the connection was open LIVES_S after it."""

    status: int
    text: str
    keeps_connection: bool


def stream_once(port: int, model: str, timeout_s: float) -> FirstAnswer:
    """Stream two tokens from the server on this port; OSError if there is no complete answer in time."""
    body = {"model": model, "prompt": "ready?", "max_tokens": 2, "temperature": 0.0, "ignore_eos": True, "stream": True}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout_s)
    try:
        connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read().decode(errors="replace")
        # http.client closes its side itself where the answer says that the server will.
        is_open = connection.sock is not None and not select.select([connection.sock], [], [], LIVES_S)[0]
        return FirstAnswer(answer.status, text, is_open)
    except http.client.HTTPException as error:
        raise ConnectionError(f"POST /v1/completions: {error!r}") from error
    finally:
        connection.close()
