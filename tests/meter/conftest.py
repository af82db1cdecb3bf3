"""A truth server to start, and a meter to run against it, each as a process of its own."""

import copy
import json
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from meter.events import NO_TIME

ROOT = Path(__file__).parents[2]
TRUTH_SERVER = ROOT / "tests" / "emulators" / "truth_server.py"
PLAN: dict[str, Any] = {
    "meter_plan_version": 2,
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
    "workers": 1,
    "kernel_stamps": True,
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
    def columns(self) -> dict[str, Sequence[int]]:
        """events.bin, parsed by its description in meter.json."""
        said = self.summary["events"]
        codes = {"<i8": "q", "<i4": "i", "|u1": "B"}
        packed = "<" + "".join(f"{said['count']}{codes[kind]}" for _name, kind in said["columns"])
        numbers = iter(struct.unpack(packed, (self.folder / "events.bin").read_bytes()))
        return {name: list(islice(numbers, said["count"])) for name, _kind in said["columns"]}

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The requests with their token events, stored by column in events.bin, and the kinds of all events."""
        kinds = self.summary["events"]["kinds"]
        return [row | _events(row, self.columns, kinds) for row in self.requests]

    @property
    def outcomes(self) -> list[str]:
        return [row["outcome"] for row in self.rows]


def _events(row: dict[str, Any], columns: dict[str, Sequence[int]], kinds: Sequence[str]) -> dict[str, Any]:
    every = range(row["event_first"], row["event_first"] + row["event_count"])
    tokens = [place for place in every if columns["event_tokens"][place]]
    own = {name: [columns[name][place] for place in tokens] for name in columns if name != "event_kind"}
    stamps = [None if at == NO_TIME else at for at in own["event_kernel_ns"]]
    stamped = stamps if any(at is not None for at in stamps) else None
    return {**own, "event_kernel_ns": stamped, "kinds": [kinds[columns["event_kind"][place]] for place in every]}


StartTruth = Callable[..., TruthServer]
RunMeter = Callable[..., Report]


def make_plan(**changes: object) -> dict[str, Any]:
    return {**copy.deepcopy(PLAN), **changes}


def answer_models(server: socket.socket) -> None:
    """Answer the meter's check before a load: the model "small" is served. Then close the connection."""
    connection, _peer = server.accept()
    with closing(connection):
        connection.recv(65_536)
        body = b'{"object":"list","data":[{"id":"small"}]}'
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))


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

        def start(fault: str = "", *flags: str, ttft_ms: float = 5, itl_ms: float = 1, **more: str) -> TruthServer:
            log_path = tmp_path / f"truth-{os.urandom(4).hex()}.jsonl"
            log_path.touch()
            times = {"TRUTH_TTFT_MS": str(ttft_ms), "TRUTH_ITL_MS": str(itl_ms), "TRUTH_START_S": "0"}
            names = {"TRUTH_FAULT": fault, "TRUTH_LOG": str(log_path)}
            argv = [sys.executable, str(TRUTH_SERVER), "serve", "small", "--port", "0", *flags]
            environment = {**os.environ, **times, **names, **more}
            process = subprocess.Popen(argv, env=environment, stderr=subprocess.PIPE, text=True)
            stack.enter_context(process)
            stack.callback(process.kill)
            scheme = "https" if "TRUTH_TLS" in more else "http"
            return TruthServer(f"{scheme}://127.0.0.1:{wait_for_port(process)}", process, log_path)

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
