"""The rig of other load tools, without the tools: what it compares, prints and keeps."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from bench.audit.claim import Claim, ClaimedConfig, ClaimedTotals, ClaimSource
from bench.client_error.truth import Truth
from benchmarks.clients.client import UnavailableError
from benchmarks.peers.__main__ import is_clean, lines_of
from benchmarks.peers.tool import Load, find_python
from benchmarks.peers.twins import keep_twin
from benchmarks.peers.values import values_of
from tests.warehouse.importers.reading import FORMATS
from warehouse.audit import AuditOptions, audit

CLOSED = Load("closed", 2, None, request_count=2, warmup_count=1, input_tokens=64, output_tokens=3)
MS = 1_000_000


def truth() -> Truth:
    """A warm-up and two requests: TTFT 200 ms, a token every 10 ms."""
    arrived = np.array([0, 1000, 1100]) * MS
    written = (arrived[:, None] + np.array([200, 210, 220]) * MS).ravel()
    return Truth(
        ids=("warm-up", "a", "b"),
        arrived_ns=arrived,
        asked_tokens=np.full(3, 3),
        at=np.array([0, 3, 6, 9]),
        written_ns=written,
        late_ns=np.zeros(9, dtype=np.int64),
        tokens=np.ones(9, dtype=np.int64),
        cpu_s=0.0,
    )


def claim(**said: float) -> Claim:
    """What a tool says of these two requests."""
    right = {"completed": 2, "total_output_tokens": 6, "total_input_tokens": 128, "duration_s": 0.32}
    right |= {"request_throughput_per_s": 6.25, "output_throughput_tok_per_s": 18.75}
    asked = ClaimedConfig(model="truth", isl=64, osl=3, request_count=2, concurrency=2, is_open_loop=False)
    latency_s = {
        metric: dict.fromkeys(("mean", "median", "max"), value)
        for metric, value in (("ttft", 0.2), ("tpot", 0.01), ("e2el", 0.22))
    }
    return Claim(ClaimSource("f", "", "", "x", 1), asked, ClaimedTotals(**{**right, **said}), latency_s)  # type: ignore[arg-type]


def wrong(read: Claim) -> list[str]:
    return [value.name for value in values_of(read, truth(), CLOSED) if not value.is_right]


def test_what_a_tool_says_is_compared_with_the_measured_requests() -> None:
    assert wrong(claim()) == []
    assert wrong(claim(total_output_tokens=9)) == ["output tokens"]
    assert wrong(claim(duration_s=320.0)) == ["duration"]


def test_a_row_is_printed_with_what_is_wrong_of_it() -> None:
    found = audit([str(FORMATS.parent / "audit/little_excess.json")], AuditOptions())
    values = [list(values_of(claim(total_output_tokens=9), truth(), CLOSED))]

    text = "\n".join(lines_of("tool", found, values))

    assert not is_clean(found)
    assert "rejected  20 of 21 values right, little_excess.json" in text
    assert "output tokens was read as 9, and is 6" in text
    assert "FAIL little_excess" in text


def test_a_python_that_is_new_enough_is_this_one() -> None:
    assert find_python((3, 11)) == sys.executable
    with pytest.raises(UnavailableError, match=r"needs Python 3\.90 or newer"):
        find_python((3, 90))


def test_a_twin_has_every_number_and_no_place(tmp_path: Path) -> None:
    run, twin = tmp_path / "run", tmp_path / "twin"
    run.mkdir()
    report = {"path": str(run / "x"), "requests": [{"prompt": "words", "ttft": 0.25, "none": None}], "pdf": [1, 2]}
    (run / "report.json").write_text(json.dumps(report))
    (run / "client.log").write_text("not kept")

    keep_twin(run, twin, [run])

    assert [file.name for file in twin.iterdir()] == ["report.json"]
    assert json.loads((twin / "report.json").read_text()) == {"path": "/twin/x", "requests": [{"ttft": 0.25}]}
