"""What each client makes of broken answers: how many it calls good, how many failed, beside what the server wrote."""

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
from benchmarks.client_run import REASONS, Bench, say, timeout_s
from benchmarks.clients.client import Asked, Client, UnavailableError
from benchmarks.process_tree import ClientFailedError, run_tree

SERVER = Path(__file__).parents[1] / "tests" / "emulators" / "truth_server.py"
CELL = LoadCell(streams=4, ttft_ms=100, itl_ms=5, output_tokens=100, request_count=12)
TRUTH = "truth"
ROLE_FIRST = "role-only first chunk, at once (chat)"
# What the table says, and what the server is told; each strikes every 4th answer, the last two all of them.
FAULTS = {
    "none": "",
    "HTTP 500": "http500:4",
    "cut mid-stream": "cut:4",
    "error inside a 200 stream, then [DONE]": "sse_error:4",
    "half the tokens despite ignore_eos": "short:4",
    "4 tokens an event": "tokens_per_event:4",
    ROLE_FIRST: "role_first",
}


def fault_table(clients: Sequence[Client], bench: Bench) -> Iterator[FaultRun]:
    """Run every client through every fault, two at a time, and tell the truth of each fault first."""
    pairs = [(fault, client) for fault in FAULTS for client in clients if client.judges_answers]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for (fault, client), runs in zip(pairs, pool.map(lambda pair: run_fault(bench, *pair), pairs), strict=True):
            say(f"{fault}: {client.name} {'; '.join(run.reason for run in runs if run.reason) or 'done'}")
            yield from runs


def run_fault(bench: Bench, fault: str, client: Client) -> tuple[FaultRun, ...]:
    """One client against a server with one fault: its account, and the truth where the meter was asked."""
    try:
        return account(bench, fault, client)
    except REASONS as error:
        nothing = {"ok": None, "failed": None, "output_tokens": None, "ttft_mean_ms": None, "itl_mean_ms": None}
        return (FaultRun(fault=fault, client=client.name, reason=str(error), **nothing),)


def account(bench: Bench, fault: str, client: Client) -> tuple[FaultRun, ...]:
    """Drive the client; raises its own errors."""
    program = bench.programs[client.name]
    if isinstance(program, str):
        raise UnavailableError(program)
    with tempfile.TemporaryDirectory(dir=bench.scratch) as name:
        folder = Path(name)
        with fault_server(FAULTS[fault], folder / "truth.jsonl") as port:
            argv = client.command(program, Asked(CELL, 0, port, bench.tokenizer, folder, is_chat=fault == ROLE_FIRST))
            run_tree(argv, client.surroundings(), None, timeout_s(CELL), folder)
        said = next(iter(client.read(folder).values()))
        truth = read_log((folder / "truth.jsonl").read_text())
    mine = FaultRun(
        fault=fault,
        client=client.name,
        ok=said.ok,
        failed=said.failed,
        output_tokens=said.output_tokens,
        ttft_mean_ms=float(said.ttft_ms.mean()) if len(said.ttft_ms) else None,
        itl_mean_ms=float(said.itl_ms.mean()) if len(said.itl_ms) else None,
        reason=None,
    )
    return (mine, truth_of(fault, truth)) if client.name == "meter" else (mine,)


@contextmanager
def fault_server(faults: str, log: Path) -> Iterator[int]:
    """Run the emulator of vLLM with these faults; gives its port."""
    told = {"TRUTH_TTFT_MS": f"{CELL.ttft_ms:g}", "TRUTH_ITL_MS": f"{CELL.itl_ms:g}", "TRUTH_START_S": "0"}
    argv = [sys.executable, str(SERVER), "serve", TRUTH, "--port", "0"]
    environment = {**os.environ, **told, "TRUTH_FAULT": faults, "TRUTH_LOG": str(log)}
    with subprocess.Popen(argv, stderr=subprocess.PIPE, env=environment, text=True) as process:
        try:
            yield port_of(process)
        finally:
            process.kill()


def port_of(process: subprocess.Popen[str]) -> int:
    """Wait until the server says where it listens; raises ClientFailedError where it ends instead."""
    said = []
    for line in process.stderr or ():
        said.append(line)
        if "Listening on port" in line:
            return int(line.rsplit(maxsplit=1)[-1])
    raise ClientFailedError(f"the server with faults does not start: {' '.join(said)[-300:]}")


def read_log(text: str) -> tuple[int, int]:
    """How many answers the server finished as they were asked for, and the tokens in them."""
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
    """What a client should have said."""
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
