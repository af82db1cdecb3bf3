"""Pull an image by its digest: progress told, tried again where that can help, every refusal in plain words."""

import os
import selectors
import subprocess
import time
from collections import deque
from pathlib import Path

from bench.errors import EngineBuildError, NoSpaceError
from infra.clock import SteadyClock, poll
from infra.processes import cancellation
from infra.reporting import Say

PAUSES_S = (5.0, 20.0, 60.0)  # between the tries
# The last and largest layer of an engine's image is unpacked for minutes without a word.
SILENCE_S = 900.0
TELL_S = 10.0
LAST_LINES = 5
# What docker says where trying again is of no use, and what to do then.
PERMANENT = (
    ("manifest unknown", "no such image: check its name and digest"),
    ("not found", "no such image: check its name and digest"),
    ("denied", "the registry does not let us: log this machine in, or take a public image"),
    ("unauthorized", "the registry does not let us: log this machine in, or take a public image"),
    ("no matching manifest", "the image is not made for this machine's processor"),
)
LIMIT_WORDS = ("toomanyrequests", "rate limit")


def pull(docker: Path, image: str, say: Say) -> None:
    """Pull an image; layers that came are kept by docker for the next try.

    Raises EngineBuildError with docker's last words, NoSpaceError where its disk is full.
    """
    words = ""
    for pause_s in (*PAUSES_S, 0.0):
        failed = _pull_once(docker, image, say)
        if failed is None:
            return
        words = failed
        _raise_permanent(image, words)
        if pause_s:
            say(f"pulling {image} failed ({words}); trying again in {pause_s:g} s")
            poll(SteadyClock(), min(pause_s, 1.0), cancellation.check, within_s=pause_s)
    hint = "; the registry limits pulls: log this machine in" if any(word in words for word in LIMIT_WORDS) else ""
    raise EngineBuildError(f"the image {image} could not be pulled, {len(PAUSES_S) + 1} times: {words}{hint}")


def _raise_permanent(image: str, words: str) -> None:
    if "no space left on device" in words:
        raise NoSpaceError(f"the disk of docker filled up while {image} was pulled; make room, or use a larger machine")
    if any(word in words for word in LIMIT_WORDS):
        return
    for sign, meaning in PERMANENT:
        if sign in words:
            raise EngineBuildError(f"the image {image} cannot be pulled: {meaning} ({words})")


def _pull_once(docker: Path, image: str, say: Say) -> str | None:
    """Pull once; None where it worked, else docker's last words."""
    with subprocess.Popen(
        [str(docker), "pull", image], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        try:
            with cancellation.waiting_for(process):
                words = _follow(process, _Layers(image, say))
        finally:
            process.kill()
    return None if process.returncode == 0 else words


def _follow(process: subprocess.Popen[bytes], layers: "_Layers") -> str:
    """Read a pull's output to its end, at most SILENCE_S of silence at a time; return its last words."""
    last: deque[str] = deque(maxlen=LAST_LINES)
    unfinished = b""
    with selectors.DefaultSelector() as waiting:
        pipe = process.stdout.fileno() if process.stdout else -1
        waiting.register(pipe, selectors.EVENT_READ)
        while True:
            if not waiting.select(SILENCE_S):
                return f"no word from docker for {SILENCE_S:g} s"
            # Not by readline: lines that wait in its buffer wake no selector.
            piece = os.read(pipe, 65536)
            *lines, unfinished = (unfinished + piece).split(b"\n")
            for line in lines:
                words = line.decode(errors="replace").strip()
                last.append(words)
                layers.reporter(words)
            if not piece:
                process.wait()
                return " | ".join([*last, unfinished.decode(errors="replace")]).rstrip(" |")


class _Layers:
    """Counts the layers of a pull by docker's words, and tells them now and then."""

    def __init__(self, image: str, say: Say) -> None:
        self._image, self._say = image, say
        self._all: set[str] = set()
        self._done: set[str] = set()
        self._told = time.monotonic()
        say(f"pulling {image}")

    def reporter(self, line: str) -> None:
        """One line of docker's."""
        layer, _, state = line.partition(": ")
        if state in ("Pulling fs layer", "Already exists"):
            self._all.add(layer)
        if state in ("Pull complete", "Already exists"):
            self._done.add(layer)
        if time.monotonic() - self._told >= TELL_S:
            self._told = time.monotonic()
            self._say(f"pulling {self._image}: {len(self._done)} of {len(self._all)} layers")
