"""Run a child process that transfers a model, watch the bytes that it brings to disk, and kill it if it stalls."""

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from infra.models.child_protocol import DISK_FULL, TOKEN, Job, Result, TransferFailure, read_answer, write_job
from infra.processes import cancellation
from infra.processes.detached import MARK
from infra.processes.environment import NETWORK, child_environment
from infra.processes.own_program import FOLDER, from_any_folder, own_program

POLL_S = 0.5
END_PATIENCE_S = 10.0
TOKENS = ("NIGHTBENCH_HF_TOKEN", TOKEN)
LINE_MAX = 500
LEAST_BYTES = 256 << 10  # that must arrive in each `stall_s`: a hub that drips is given up, as a bucket is
# The library sleeps for as long as the hub demands; that is not a stall.
WAITING = re.compile(r"Rate limited\. Waiting (\d+)")

Child = Literal["hub_child", "bucket_child"]  # a module of this package


@dataclass(frozen=True)
class Hub:
    """Which model hub to use, and when a transfer is given up.

    A try ends once `stall_s` brings fewer than LEAST_BYTES new bytes to disk; a download ends after `tries` in a row
    that finish no file. The token is read from NIGHTBENCH_HF_TOKEN, else HF_TOKEN, and reaches the child by its
    environment alone.
    """

    endpoint: str | None = None  # None: the library's own
    lease_id: str | None = None  # marks the child, so that it can be found when the machine is released
    stall_s: float = 120.0
    tries: int = 4


@dataclass(frozen=True)
class Transfer:
    """One job for a child: the operation, its values, and variables for the child's environment."""

    child: Child
    operation: str
    values: Job
    environment: Mapping[str, str] | None = None


def run_child(transfer: Transfer, aside: Path, hub: Hub, bytes_now: Callable[[], int]) -> Result:
    """Run one job in a child and return its result; TransferFailure if it fails, crashes or stalls.

    The child has ended when this returns or raises, and it exits if this process is killed. `aside` gets its files.
    It runs in another folder, so all paths must be absolute.
    """
    aside.mkdir(parents=True, exist_ok=True)
    answer, log = aside / "answer.json", aside / "log"
    answer.unlink(missing_ok=True)
    with (
        log.open("wb") as sink,
        subprocess.Popen(
            own_program(f"infra.models.{transfer.child}"),
            stdin=subprocess.PIPE,
            stdout=sink,
            stderr=sink,
            env=_environment(hub, aside, transfer),
            cwd=FOLDER,
            start_new_session=True,
            text=True,
        ) as child,
    ):
        try:
            with cancellation.waiting_for(child):
                _send_job(child, write_job(transfer.operation, answer, transfer.values))
                _watch(child, log, hub, bytes_now)
        finally:
            _kill(child)
    return _read_answer(answer, log, child.returncode)


def _environment(hub: Hub, aside: Path, transfer: Transfer) -> dict[str, str]:
    """The settings of the hub's library and the lease's mark; the token only for the child that talks to the hub."""
    token = next((os.environ[name] for name in TOKENS if os.environ.get(name)), None)
    own = {
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "HF_XET_HIGH_PERFORMANCE": "1",
        "HF_XET_CACHE": str(aside / "xet"),
        **({"HF_ENDPOINT": hub.endpoint} if hub.endpoint else {}),
        **({TOKEN: token} if token and transfer.child == "hub_child" else {}),
        **({MARK: hub.lease_id} if hub.lease_id else {}),
    }
    environment = child_environment({**own, **(transfer.environment or {})}, also=NETWORK)
    environment.pop("HF_HUB_OFFLINE", None)
    return from_any_folder(environment)


def _send_job(child: subprocess.Popen[str], line: str) -> None:
    """Write the job to the child's stdin, which stays open, since the child exits when it closes."""
    if child.stdin is None:
        return
    try:
        child.stdin.write(line)
        child.stdin.flush()
    except BrokenPipeError:  # it exited at once; its log has the reason
        return


def _watch(child: subprocess.Popen[str], log: Path, hub: Hub, bytes_now: Callable[[], int]) -> None:
    """Wait until the child exits; raises TransferFailure if too few bytes arrive for too long."""
    seen, since = 0, time.monotonic()
    poll_s = min(POLL_S, hub.stall_s / 4)
    while True:
        try:
            child.wait(poll_s)
        except subprocess.TimeoutExpired:
            now = bytes_now()
        else:
            return
        seen = min(seen, now)  # fewer where the library starts a file again
        if now - seen >= LEAST_BYTES:
            seen, since = now, time.monotonic()
        elif time.monotonic() - since > hub.stall_s + _rate_limit_wait_s(log):
            too_few = f"fewer than {LEAST_BYTES >> 10} KiB in {hub.stall_s:g} s"
            raise TransferFailure("stalled", f"{too_few}; {_last_line(log)}")


def _rate_limit_wait_s(log: Path) -> float:
    waits = WAITING.findall(_last_line(log))
    return float(waits[-1]) if waits else 0.0


def _last_line(log: Path) -> str:
    lines = [line for line in log.read_text("utf-8", errors="replace").splitlines() if line.strip()]
    return lines[-1][:LINE_MAX] if lines else "its log is empty"


def _kill(child: subprocess.Popen[str]) -> None:
    """Kill the child and its own children."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait(END_PATIENCE_S)


def _read_answer(answer: Path, log: Path, code: int) -> Result:
    try:
        return read_answer(answer.read_text("utf-8"))
    except (OSError, ValueError, KeyError, TypeError) as error:
        ended, last = f"signal {-code}" if code < 0 else f"exit code {code}", _last_line(log)
        kind = DISK_FULL if "No space left on device" in last else "crashed"  # xet reports it without an errno
        raise TransferFailure(kind, f"the transfer process ended with {ended}; {last}") from error
