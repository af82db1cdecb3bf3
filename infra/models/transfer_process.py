"""Run the process that talks to a model hub, watch the bytes it brings to disk, and kill it where none come."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infra.processes import cancellation
from infra.processes.detached import MARK

CHILD = Path(__file__).with_name("hub_child.py")
POLL_S = 0.5
END_PATIENCE_S = 10.0
TOKENS = ("NIGHTBENCH_HF_TOKEN", "HF_TOKEN")
# The library sleeps as long as the hub tells it to; that is not a stalled download.
WAITING = re.compile(r"Rate limited\. Waiting (\d+)")

Job = dict[str, Any]


@dataclass(frozen=True)
class Hub:
    """Which model hub, and how patient we are with it.

    `stall_s` without a new byte on disk ends a try; `tries` in a row that finish no file end the download. The token
    is in our environment (NIGHTBENCH_HF_TOKEN, else HF_TOKEN) and goes into that of the child, nowhere else.
    """

    endpoint: str | None = None  # None: the library's own
    lease_id: str | None = None  # marks the child, so that whoever gives the machine back finds it
    stall_s: float = 120.0
    tries: int = 4


class HubFailure(Exception):  # noqa: N818 - it never leaves infra/models/hub_download.py, which makes a ModelError of it
    """One try failed: its kind, and the hub's or the library's own words."""

    def __init__(self, kind: str, said: str) -> None:
        super().__init__(f"{kind}: {said}")
        self.kind = kind
        self.said = said


def run_child(
    job: Job,
    aside: Path,
    hub: Hub,
    bytes_now: Callable[[], int],
    environment: Mapping[str, str] | None = None,
    program: Path = CHILD,
) -> Job:
    """Have a child do one job and return its answer; HubFailure where it fails, crashes or stalls.

    Nothing of it is left running when this returns or raises, and it dies with us.
    """
    aside.mkdir(parents=True, exist_ok=True)
    answer, log = aside / "answer.json", aside / "log"
    answer.unlink(missing_ok=True)
    with (
        log.open("wb") as sink,
        subprocess.Popen(
            [sys.executable, "-P", str(program)],
            stdin=subprocess.PIPE,
            stdout=sink,
            stderr=sink,
            env=child_environment(hub, aside, environment or {}),
            start_new_session=True,
            text=True,
        ) as child,
    ):
        try:
            with cancellation.waiting_for(child):
                _hand_over(child, {**job, "answer": str(answer)})
                _watch(child, log, hub, bytes_now)
        finally:
            _kill(child)
    return _read_answer(answer, log, child.returncode)


def child_environment(hub: Hub, aside: Path, more: Mapping[str, str]) -> dict[str, str]:
    """The environment of the child: ours, and what makes the library quiet, quick and ours to find again."""
    token = next((os.environ[name] for name in TOKENS if os.environ.get(name)), None)
    ours = {
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "HF_XET_HIGH_PERFORMANCE": "1",
        "HF_XET_CACHE": str(aside / "xet"),
        **({"HF_ENDPOINT": hub.endpoint} if hub.endpoint else {}),
        **({"HF_TOKEN": token} if token else {}),
        **({MARK: hub.lease_id} if hub.lease_id else {}),
    }
    kept = {name: value for name, value in os.environ.items() if name not in (*TOKENS, "HF_HUB_OFFLINE")}
    return {**kept, **ours, **more}


def _hand_over(child: subprocess.Popen[str], job: Job) -> None:
    """Give the child its job; its stdin stays open, since it ends when that does."""
    if child.stdin is None:
        return
    try:
        child.stdin.write(json.dumps(job) + "\n")
        child.stdin.flush()
    except BrokenPipeError:  # it died at once; its log says why
        return


def _watch(child: subprocess.Popen[str], log: Path, hub: Hub, bytes_now: Callable[[], int]) -> None:
    """Wait for the child's end, and raise where it brings nothing for too long."""
    seen, since = -1, time.monotonic()
    poll_s = min(POLL_S, hub.stall_s / 4)
    while True:
        try:
            child.wait(poll_s)
        except subprocess.TimeoutExpired:
            now = bytes_now()
        else:
            return
        if now != seen:
            seen, since = now, time.monotonic()
        elif time.monotonic() - since > hub.stall_s + _told_to_wait_s(log):
            raise HubFailure("stalled", f"no new byte for {hub.stall_s:g} s; {_last_line(log)}")


def _told_to_wait_s(log: Path) -> float:
    waits = WAITING.findall(_last_line(log))
    return float(waits[-1]) if waits else 0.0


def _last_line(log: Path) -> str:
    lines = [line for line in log.read_text("utf-8", errors="replace").splitlines() if line.strip()]
    return lines[-1][:500] if lines else "it logged nothing"


def _kill(child: subprocess.Popen[str]) -> None:
    """End the child and whatever it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait(END_PATIENCE_S)


def _read_answer(answer: Path, log: Path, code: int) -> Job:
    try:
        value = json.loads(answer.read_text("utf-8"))
    except (FileNotFoundError, ValueError) as error:
        ended, last = f"signal {-code}" if code < 0 else f"exit code {code}", _last_line(log)
        kind = "disk-full" if "No space left on device" in last else "crashed"  # so says xet, which has no errno
        raise HubFailure(kind, f"the download process ended with {ended}; {last}") from error
    if "failed" in value:
        raise HubFailure(str(value["failed"]), str(value.get("said")))
    return dict(value)
