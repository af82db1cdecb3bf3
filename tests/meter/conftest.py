"""A truth server to start, and a meter to run against it, each as a process of its own."""

import copy
import json
import os
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from meter.report import NO_TIME

ROOT = Path(__file__).parents[2]
TRUTH_SERVER = ROOT / "tests" / "emulators" / "truth_server.py"
PLAN: dict[str, Any] = {
    "meter_plan_version": 1,
    "url": "http://127.0.0.1:1",
    "path": "/v1/completions",
    "model": "small",
    "load": {"kind": "closed", "concurrency": 2},
    "prompts": {"kind": "random", "input_tokens": 16, "token_low": 264, "token_high": 10240, "seed": 123},
    "output_tokens": 8,
    "request_count": 6,
    "warmup_count": 0,
    "timeout_s": 30.0,
    "extra_body": {"temperature": 0.0, "ignore_eos": True, "return_token_ids": True},
}


@dataclass(frozen=True)
class TruthServer:
    """A running truth server."""

    url: str
    process: subprocess.Popen[str]
    log_path: Path

    def log(self, *kinds: str) -> list[dict[str, Any]]:
        entries = [json.loads(line) for line in self.log_path.read_text().splitlines()]
        return [entry for entry in entries if entry["kind"] in kinds]

    def written_at(self, request_id: str) -> list[int]:
        return [entry["at_ns"] for entry in self.log("token") if entry["request_id"] == request_id]


@dataclass(frozen=True)
class Report:
    """A finished run of the meter."""

    exit_code: int
    stderr: str
    folder: Path

    @property
    def summary(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "meter.json").read_text())
        return found

    @property
    def requests(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "requests.jsonl").read_text().splitlines()]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The requests with their events, which stand by column in events.bin."""
        requests = self.requests
        count = sum(row["event_count"] for row in requests)
        numbers = struct.unpack(f"<{2 * count}q{count}i", (self.folder / "events.bin").read_bytes())
        times = [None if number == NO_TIME else number for number in numbers[: 2 * count]]
        return [row | _events(row, times[:count], times[count:], numbers[2 * count :]) for row in requests]

    @property
    def outcomes(self) -> list[str]:
        return [row["outcome"] for row in self.rows]


def _events(row: dict[str, Any], seen: Sequence[Any], kernel: Sequence[Any], tokens: Sequence[int]) -> dict[str, Any]:
    own = slice(row["event_first"], row["event_first"] + row["event_count"])
    stamped = list(kernel[own]) if any(at is not None for at in kernel[own]) else None
    return {"event_at_ns": list(seen[own]), "event_kernel_ns": stamped, "event_tokens": list(tokens[own])}


StartTruth = Callable[..., TruthServer]
RunMeter = Callable[..., Report]


def make_plan(**changes: object) -> dict[str, Any]:
    return {**copy.deepcopy(PLAN), **changes}


def wait_for_port(process: subprocess.Popen[str]) -> int:
    port = 0
    assert process.stderr is not None
    for line in process.stderr:
        if "Listening on port" in line:
            port = int(line.rsplit(maxsplit=1)[1])
        if "Application startup complete." in line:
            return port
    raise AssertionError("the truth server ended before it was ready")


@pytest.fixture
def start_truth(tmp_path: Path) -> Iterator[StartTruth]:
    """Start truth servers with these faults and flags; all are gone when the test ends."""
    with ExitStack() as stack:

        def start(fault: str = "", *flags: str, ttft_ms: float = 5, itl_ms: float = 1) -> TruthServer:
            log_path = tmp_path / f"truth-{os.urandom(4).hex()}.jsonl"
            log_path.touch()
            times = {"TRUTH_TTFT_MS": str(ttft_ms), "TRUTH_ITL_MS": str(itl_ms), "TRUTH_START_S": "0"}
            names = {"TRUTH_FAULT": fault, "TRUTH_LOG": str(log_path)}
            argv = [sys.executable, str(TRUTH_SERVER), "serve", "small", "--port", "0", *flags]
            process = subprocess.Popen(argv, env={**os.environ, **times, **names}, stderr=subprocess.PIPE, text=True)
            stack.enter_context(process)
            stack.callback(process.kill)
            return TruthServer(f"http://127.0.0.1:{wait_for_port(process)}", process, log_path)

        yield start


@pytest.fixture
def start_meter(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start the meter on a plan, writing to tmp_path / "out"."""
    with ExitStack() as stack:

        def start(url: str, **changes: object) -> subprocess.Popen[str]:
            plan_path = tmp_path / "plan.json"
            plan_path.write_text(json.dumps(make_plan(url=url, **changes)))
            argv = [sys.executable, "-m", "meter", "run", str(plan_path), str(tmp_path / "out")]
            process = subprocess.Popen(argv, cwd=ROOT, stderr=subprocess.PIPE, text=True)
            stack.enter_context(process)
            stack.callback(process.kill)
            return process

        yield start


@pytest.fixture
def run_meter(start_meter: Callable[..., subprocess.Popen[str]], tmp_path: Path) -> RunMeter:
    """Run the meter on a plan to its end."""

    def run(url: str, **changes: object) -> Report:
        process = start_meter(url, **changes)
        _nothing, stderr = process.communicate(timeout=120)
        return Report(process.returncode, stderr, tmp_path / "out")

    return run
