"""The suite of `benchmarks.token_counts` and the traces that it replays, for any number of requests."""

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path

SUITE = Path(__file__).with_name("token_counts.toml")
CANCELLED_SHARE = 0.2  # as the suite says
BLOCK = 512  # tokens, of Mooncake's hashes
TURNS = 4  # in a session


def write_suite(folder: Path, count: int) -> Path:
    """Write the suite for `count` requests of each kind, and its traces beside it; return the suite."""
    answered = round(count / (1 - CANCELLED_SHARE) * 1.1)  # so that about `count` are answered, and rather more
    made = {"COUNT": str(count), "ANSWERED": str(answered), "CONNECTOR": json.dumps(connector(folder / "tier"))}
    made |= {"HANDED": str(folder / "handed-over")}
    text = re.sub("|".join(made), lambda found: made[found[0]], SUITE.read_text("utf-8"))
    lines = {"arrivals.csv": arrivals(count), "mooncake.jsonl": mooncake(count), "agents.jsonl": agents(count)}
    for name, trace in lines.items():
        (folder / name).write_text("\n".join(trace) + "\n", "utf-8")
    suite = folder / "suite.toml"
    suite.write_text(text, "utf-8")
    return suite


def connector(store: Path) -> dict[str, object]:
    """The settings of vLLM for a tier in a folder: only GPUs offload to the memory of their host."""
    kept = {"kv_connector": "ExampleConnector", "kv_role": "kv_both"}
    return {**kept, "kv_connector_extra_config": {"shared_storage_path": str(store)}}


def arrivals(count: int) -> Iterator[str]:
    """Times of arrival, about 25 a second."""
    draw, at_ms = random.Random(1), 0  # noqa: S311 -- load, not secrets
    yield "arrival_s"
    for _ in range(count):
        yield f"{at_ms / 1000:.3f}"
        at_ms += draw.randrange(0, 80)


def mooncake(count: int) -> Iterator[str]:
    """Requests of seven families that share a first block, about 25 a second."""
    draw, at_ms = random.Random(2), 0  # noqa: S311 -- load, not secrets
    for number in range(count):
        row = {
            "timestamp": at_ms,
            "input_length": BLOCK + draw.randrange(8, 200),
            "output_length": draw.randrange(2, 9),
        }
        yield json.dumps({**row, "hash_ids": [draw.randrange(7), 100 + number]})
        at_ms += draw.randrange(0, 80)


def agents(count: int) -> Iterator[str]:
    """Sessions of four turns with short pauses, in aiperf's form."""
    draw = random.Random(3)  # noqa: S311 -- load, not secrets
    for number in range(count):
        session, turn = divmod(number, TURNS)
        when = {"timestamp": 10 * session} if turn == 0 else {"delay": draw.randrange(0, 50)}
        lengths = {"input_length": draw.randrange(20, 200), "output_length": draw.randrange(2, 9)}
        yield json.dumps({"session_id": f"s{session}", **when, **lengths})
