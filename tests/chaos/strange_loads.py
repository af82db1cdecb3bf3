"""What a server in the engine's place does in a random night: any answer, one that drips, or what nobody expects."""

import json
import random
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from infra.engines import server, server_facts
from infra.engines.attached import Attached
from infra.engines.endpoint import NOT_OURS
from infra.engines.http_client import Origin
from infra.engines.server import RunningServer
from tests.emulators.strange_server import dropped, strange_server, whole

FIRST_SEED = 40_000  # earlier seeds mean the nights that they meant before these servers were drawn
STRANGE = ("answers", "answers", "drips", "bug")
PAUSE_S, DEADLINE_S = 0.1, 0.25  # of real time
_DATA: tuple[object, ...] = ({"a": 1}, ["x"], [{"id": 5}], [{"id": "m", "max_model_len": "long"}], [[]], None, 7, "x")
_WHOLE: tuple[object, ...] = (None, 7, "x", [], {}, {"version": ["0"]}, {"version": {}}, {"error": {"code": []}})
_BYTES = (b"", b"\xff\xfe\x00", b"[" * 50_000, b'{"data":' * 50_000, b"<html>502</html>", b"NaN", b"9" * 5000)


def draw_strange(seed: int) -> tuple[str, ...]:
    """Draw what the server of each load does; earlier seeds have none."""
    dice = random.Random(f"strange {seed}")
    if seed < FIRST_SEED or dice.random() > 0.25:
        return ()
    return tuple(dice.choice(("", *STRANGE)) for _ in range(dice.randint(1, 3)))


def look_at_strange(strange: str, seed: object, log: Path) -> Any:
    """What a night reads of such a server before its load; raises what the real reader raises."""
    if strange == "bug":
        raise KeyError("what nobody expects")
    dice = random.Random(f"strange answers {seed}")
    log.touch()

    def answer(_request: bytes) -> list[bytes]:
        text = whole(_body(dice), dice.choice((200, 200, 200, 404, 500)))
        return dropped(text) if strange == "drips" else [text[: dice.choice((None, None, len(text) // 2))]]

    with strange_server(answer, PAUSE_S if strange == "drips" else 0.0) as url, pytest.MonkeyPatch.context() as patch:
        patch.setattr(server_facts, "ask", partial(server.ask, timeout_s=DEADLINE_S if strange == "drips" else 10.0))
        attached = Attached(Origin(url), "/health", True, {}, None)  # type: ignore[arg-type]  # nothing reads the facts
        return server_facts.look(RunningServer(None, 0, None, log, (), {}, NOT_OURS, None, attached=attached))


def _body(dice: random.Random) -> bytes:
    made = dice.choice(("data", "whole", "bytes"))
    if made == "bytes":
        return dice.choice(_BYTES)
    return json.dumps({"data": dice.choice(_DATA)} if made == "data" else dice.choice(_WHOLE)).encode()
