"""Prefect's server in a random night: killed or stopped while it measures, for good or for a while."""

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import httpx
import pytest

from tests.chaos.place import CRASH, Place

FIRST_SEED = 40_000  # earlier seeds mean the nights that they meant before this server was drawn
LOST = ("killed", "stopped", "killed for a while")
SHOWN = (
    *("create_table_artifact", "create_link_artifact"),
    *("create_progress_artifact", "update_progress_artifact"),
)
CALLS_OF_A_WHILE = 4  # which fail before the server responds again
CALLER = "prefect-server-calls"  # the one thread that may wait for the server


def draw_lost_server(seed: int) -> tuple[str, int] | None:
    """Draw what becomes of the server, and at which call; earlier seeds have one that always responds."""
    dice = random.Random(f"prefect {seed}")
    if seed < FIRST_SEED or dice.random() > 0.25:
        return None
    return dice.choice(LOST), dice.randint(1, 4)


@contextmanager
def lost_server(place: Place, lost: tuple[str, int]) -> Iterator[None]:
    """Let the server be lost from the n-th call on; what waits for it in the night itself is noted as a crash."""
    how, first = lost
    numbers = iter(range(1, 1_000_000))

    def call(*_shown: object, **_named: object) -> object:
        number = next(numbers)
        if number < first or (how == "killed for a while" and number >= first + CALLS_OF_A_WHILE):
            return uuid4()
        if threading.current_thread().name != CALLER:
            (place.notes / CRASH).write_text("the night itself waits for Prefect's server")
        if how == "stopped":
            threading.Event().wait()  # for ever: the process ends without this thread
        raise httpx.ConnectError("all connection attempts failed")

    with pytest.MonkeyPatch.context() as patch:
        for name in SHOWN:
            patch.setattr(f"tasks.artifacts.{name}", call)
        yield
