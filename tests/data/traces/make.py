"""Writes the small traces of the tests, in the formats of published ones: `python tests/data/traces/make.py`.

Every value is drawn from a fixed seed; no line is from a recorded trace.
"""

import json
import random
from pathlib import Path

HERE = Path(__file__).parent
REQUESTS = 24
BLOCK = 512


def main() -> None:
    """Rewrite the traces."""
    draw = random.Random(20261126)
    (HERE / "mooncake.jsonl").write_text(_lines(_mooncake(draw)))
    (HERE / "agents.jsonl").write_text(_lines(_agents(draw)))
    (HERE / "weka.jsonl").write_text(_lines(_weka(draw)))
    (HERE / "azure.csv").write_text(_azure(draw))


def _lines(rows: list[dict[str, object]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def _mooncake(draw: random.Random) -> list[dict[str, object]]:
    """Three families of prompts that share their first blocks, about ten requests a second."""
    at_ms, fresh, rows = 0, 100, []
    for _ in range(REQUESTS):
        shared = list(range(10 * (family := draw.randrange(3)), 10 * family + draw.randrange(1, 3)))
        own = draw.randrange(0, 2)
        length = BLOCK * (len(shared) + own) + draw.randrange(1, BLOCK)
        hashes = shared + list(range(fresh, fresh + own + 1))
        fresh += own + 1
        rows.append(
            {"timestamp": at_ms, "input_length": length, "output_length": draw.randrange(4, 17), "hash_ids": hashes}
        )
        at_ms += round(draw.expovariate(10) * 1000)
    return rows


def _agents(draw: random.Random) -> list[dict[str, object]]:
    """Six sessions of four turns: aiperf's dialect, each turn with what it adds."""
    rows: list[dict[str, object]] = []
    for number in range(6):
        for turn in range(4):
            when = {"timestamp": 250 * number} if turn == 0 else {"delay": draw.randrange(20, 200)}
            size = draw.randrange(200, 400) if turn == 0 else draw.randrange(30, 120)
            rows.append(
                {"session_id": f"s{number}", **when, "input_length": size, "output_length": draw.randrange(4, 17)}
            )
    return rows


def _weka(draw: random.Random) -> list[dict[str, object]]:
    """Two sessions of three turns, the first with a sub-agent."""
    rows: list[dict[str, object]] = []
    for number in range(2):
        requests: list[dict[str, object]] = []
        for turn in range(3):
            blocks = 3 + 2 * turn
            length = 64 * blocks - draw.randrange(0, 30)
            times = {"t": 2.0 * turn, "api_time": 1.0, "think_time": 0.1}
            requests.append({**times, "type": "s", "in": length, "out": 8, "hash_ids": list(range(blocks))})
        if number == 0:
            own = {"t": 3.0, "type": "n", "in": 100, "out": 6, "hash_ids": [0, 90]}
            requests.insert(2, {"t": 3.0, "type": "subagent", "agent_id": "reader", "requests": [own]})
        rows.append({"id": f"w{number}", "block_size": 64, "hash_id_scope": "local", "requests": requests})
    return rows


def _azure(draw: random.Random) -> str:
    """Times with seven digits of a second, as in the trace of 2023."""
    at_s, lines = 0.0, ["TIMESTAMP,ContextTokens,GeneratedTokens"]
    for _ in range(REQUESTS):
        time = f"2023-11-16 18:15:{int(at_s):02d}.{int(at_s % 1 * 1e7):07d}"
        lines.append(f"{time},{draw.randrange(20, 500)},{draw.randrange(4, 17)}")
        at_s += draw.expovariate(10)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
