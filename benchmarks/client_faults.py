"""How each client counts broken responses: good and failed ones, beside the server's own count."""

import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from bench.client_error.calibration import LoadCell
from benchmarks.client_result import FaultRun
from benchmarks.client_run import REASONS, ClientSetup, say, timeout_s
from benchmarks.clients.client import Client, ClientTask, UnavailableError
from benchmarks.process_tree import ClientFailedError, run_tree

SERVER = Path(__file__).parents[1] / "tests" / "emulators" / "truth_server.py"
CELL = LoadCell(streams=4, ttft_ms=100, itl_ms=5, output_tokens=100, request_count=12)
TRUTH = "truth"
ROLE_FIRST = "role-only first chunk, at once (chat)"
# The table's name of a fault and the server's; each applies to every 4th response, the last two to all.
FAULTS = {
    "none": "",
    "HTTP 500": "http500:4",
    "cut mid-stream": "cut:4",
    "error inside a 200 stream, then [DONE]": "sse_error:4",
    "half the tokens despite ignore_eos": "short:4",
    "4 tokens an event": "tokens_per_event:4",
    ROLE_FIRST: "role_first",
}


def fault_table(clients: Sequence[Client], setup: ClientSetup) -> Iterator[FaultRun]:
    """Run every client against every fault, as many at a time as there are cores; yields the truth with the meter's."""
    pairs = [(fault, client) for fault in FAULTS for client in clients if client.judges_answers]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for (fault, client), runs in zip(pairs, pool.map(lambda pair: run_fault(setup, *pair), pairs), strict=True):
            say(f"{fault}: {client.name} {'; '.join(run.reason for run in runs if run.reason) or 'done'}")
            yield from runs


def run_fault(setup: ClientSetup, fault: str, client: Client) -> tuple[FaultRun, ...]:
    """One client's count of one fault; with the meter's comes the truth."""
    try:
        return count_responses(setup, fault, client)
    except REASONS as error:
        nothing = {"ok": None, "failed": None, "output_tokens": None, "ttft_mean_ms": None, "itl_mean_ms": None}
        return (FaultRun(fault=fault, client=client.name, reason=str(error), **nothing),)


def count_responses(setup: ClientSetup, fault: str, client: Client) -> tuple[FaultRun, ...]:
    """Drive the client against the fault; raises the client's own errors."""
    program = setup.programs[client.name]
    if isinstance(program, str):
        raise UnavailableError(program)
    with tempfile.TemporaryDirectory(dir=setup.scratch) as name:
        folder = Path(name)
        with fault_server(FAULTS[fault], folder / "truth.jsonl") as port:
            argv = client.command(
                program, ClientTask(CELL, 0, port, setup.tokenizer, folder, is_chat=fault == ROLE_FIRST)
            )
            run_tree(argv, client.full_environment(), None, timeout_s(CELL), folder)
        report = next(iter(client.read(folder).values()))
        truth = read_log((folder / "truth.jsonl").read_text())
    counted = FaultRun(
        fault=fault,
        client=client.name,
        ok=report.ok,
        failed=report.failed,
        output_tokens=report.output_tokens,
        ttft_mean_ms=float(report.ttft_ms.mean()) if len(report.ttft_ms) else None,
        itl_mean_ms=float(report.itl_ms.mean()) if len(report.itl_ms) else None,
        reason=None,
    )
    return (counted, truth_of(fault, truth)) if client.name == "meter" else (counted,)


@contextmanager
def fault_server(faults: str, log: Path) -> Iterator[int]:
    """Run the vLLM emulator with these faults; yields its port."""
    schedule = {"TRUTH_TTFT_MS": f"{CELL.ttft_ms:g}", "TRUTH_ITL_MS": f"{CELL.itl_ms:g}", "TRUTH_START_S": "0"}
    argv = [sys.executable, str(SERVER), "serve", TRUTH, "--port", "0"]
    environment = {**os.environ, **schedule, "TRUTH_FAULT": faults, "TRUTH_LOG": str(log)}
    with subprocess.Popen(argv, stderr=subprocess.PIPE, env=environment, text=True) as process:
        try:
            yield port_of(process)
        finally:
            process.kill()


def port_of(process: subprocess.Popen[str]) -> int:
    """Wait for the port in the server's output; raises ClientFailedError if the server exits first."""
    lines = []
    for line in process.stderr or ():
        lines.append(line)
        if "Listening on port" in line:
            return int(line.rsplit(maxsplit=1)[-1])
    raise ClientFailedError(f"the vLLM emulator did not start: {' '.join(lines)[-300:]}")


def read_log(text: str) -> tuple[int, int]:
    """How many responses the server completed as requested, and their tokens."""
    kinds: dict[str, list[str]] = defaultdict(list)
    tokens: dict[str, int] = defaultdict(int)
    for entry in map(json.loads, text.splitlines()):
        kinds[entry["request_id"]].append(entry["kind"])
        tokens[entry["request_id"]] += entry.get("tokens", 0)
    good = [
        name
        for name, seen in kinds.items()
        if "done" in seen and "broken" not in seen and tokens[name] == CELL.output_tokens
    ]
    return len(good), sum(tokens[name] for name in good)


def truth_of(fault: str, truth: tuple[int, int]) -> FaultRun:
    """The count that a client should report."""
    good, tokens = truth
    failed = CELL.request_count - good
    return FaultRun(
        fault=fault,
        client=TRUTH,
        ok=good,
        failed=failed,
        output_tokens=tokens,
        ttft_mean_ms=CELL.ttft_ms,
        itl_mean_ms=CELL.itl_ms,
        reason=None,
    )
