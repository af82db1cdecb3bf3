"""Pull an image by its digest: report progress, retry transient failures, and explain permanent ones."""

import os
import selectors
import subprocess
import time
from collections import deque
from pathlib import Path

from bench.errors import EngineBuildError, NoSpaceError
from infra.clock import SystemClock, poll
from infra.processes import cancellation
from infra.processes.environment import TOOLS, child_environment
from infra.reporting import Say

PAUSES_S = (5.0, 20.0, 60.0)  # between the tries
# Docker prints nothing for minutes while it unpacks the last and largest layer of an engine's image.
SILENCE_S = 900.0
PROGRESS_EVERY_S = 10.0
LAST_LINES = 5
# Messages of docker after which a retry is useless, and what to do.
PERMANENT = (
    ("manifest unknown", "it does not exist: check its name and digest"),
    ("not found", "it does not exist: check its name and digest"),
    ("denied", "the registry denies access: run docker login on this machine, or use a public image"),
    ("unauthorized", "the registry denies access: run docker login on this machine, or use a public image"),
    ("no matching manifest", "it has no build for this machine's processor"),
)
LIMIT_WORDS = ("toomanyrequests", "rate limit")


def pull(docker: Path, image: str, say: Say) -> None:
    """Pull an image; docker keeps complete layers for the next try.

    Raises EngineBuildError with docker's last lines, NoSpaceError if its disk is full.
    """
    message = ""
    for pause_s in (*PAUSES_S, 0.0):
        failed = _pull_once(docker, image, say)
        if failed is None:
            return
        message = failed
        _raise_permanent(image, message)
        if pause_s:
            say(f"pulling {image} failed ({message}); trying again in {pause_s:g} s")
            poll(SystemClock(), min(pause_s, 1.0), cancellation.check, within_s=pause_s)
    hint = "; the registry limits pulls: run docker login here" if any(word in message for word in LIMIT_WORDS) else ""
    raise EngineBuildError(f"the image {image} could not be pulled in {len(PAUSES_S) + 1} tries: {message}{hint}")


def _raise_permanent(image: str, message: str) -> None:
    if "no space left on device" in message:
        raise NoSpaceError(f"docker's disk is full, so {image} was not pulled; make room, or use a larger machine")
    if any(word in message for word in LIMIT_WORDS):
        return
    for sign, meaning in PERMANENT:
        if sign in message:
            raise EngineBuildError(f"the image {image} cannot be pulled: {meaning} ({message})")


def _pull_once(docker: Path, image: str, say: Say) -> str | None:
    """Pull once; returns None on success, else docker's last lines."""
    with subprocess.Popen(
        [str(docker), "pull", image],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=child_environment(also=TOOLS),
    ) as process:
        try:
            with cancellation.waiting_for(process):
                message = _follow(process, _Layers(image, say))
        finally:
            process.kill()
    return None if process.returncode == 0 else message


def _follow(process: subprocess.Popen[bytes], layers: "_Layers") -> str:
    """Read a pull's output to its end, or until SILENCE_S without output; returns its last lines."""
    last: deque[str] = deque(maxlen=LAST_LINES)
    unfinished = b""
    with selectors.DefaultSelector() as waiting:
        pipe = process.stdout.fileno() if process.stdout else -1
        waiting.register(pipe, selectors.EVENT_READ)
        while True:
            if not waiting.select(SILENCE_S):
                return f"no output from docker for {SILENCE_S:g} s"
            # Not readline: a selector does not see lines in its buffer.
            block = os.read(pipe, 65536)
            *lines, unfinished = (unfinished + block).split(b"\n")
            for line in lines:
                text = line.decode(errors="replace").strip()
                last.append(text)
                layers.count(text)
            if not block:
                process.wait()
                return " | ".join([*last, unfinished.decode(errors="replace")]).rstrip(" |")


class _Layers:
    """Counts the layers in docker's output, and reports them every PROGRESS_EVERY_S."""

    def __init__(self, image: str, say: Say) -> None:
        self._image, self._say = image, say
        self._all: set[str] = set()
        self._done: set[str] = set()
        self._reported = time.monotonic()
        say(f"pulling {image}")

    def count(self, line: str) -> None:
        """Count one line of docker's output."""
        layer, _, state = line.partition(": ")
        if state in ("Pulling fs layer", "Already exists"):
            self._all.add(layer)
        if state in ("Pull complete", "Already exists"):
            self._done.add(layer)
        if time.monotonic() - self._reported >= PROGRESS_EVERY_S:
            self._reported = time.monotonic()
            self._say(f"pulling {self._image}: {len(self._done)} of {len(self._all)} layers")
