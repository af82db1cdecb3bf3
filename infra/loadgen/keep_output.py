"""Run a command and keep the head and the tail of what it prints; its standard output is the only place it writes to.

    python -I keep_output.py LIMIT COMMAND...

It runs as a file of its own, in the command's session, so that output stays bounded when the night is killed. What is
between the first and the last LIMIT bytes is counted and dropped. It exits as the command does.
"""

import os
import select
import signal
import subprocess
import sys
from collections import deque

MARKER = "[{} bytes of output were dropped here]"
CHUNK = 65536
POLL_S = 0.2


class _Kept:
    """The head, written as it comes, and the tail, which is held until the end."""

    def __init__(self, limit: int) -> None:
        self._room = self._limit = limit
        self._tail: deque[bytes] = deque()
        self._held = self._dropped = 0

    def add(self, chunk: bytes) -> None:
        """Keep a chunk, and drop the oldest of the tail that is over the limit."""
        head, rest = chunk[: self._room], chunk[self._room :]
        self._room -= len(head)
        _write(head)
        if rest:
            self._tail.append(rest)
            self._held += len(rest)
        while self._tail and self._held - self._limit >= len(self._tail[0]):
            self._held -= len(self._tail[0])
            self._dropped += len(self._tail.popleft())

    def finish(self) -> None:
        """Write the tail. After a gap it begins with a whole line, so that no number is cut."""
        tail = b"".join(self._tail)
        if self._dropped:
            part = tail.find(b"\n") + 1
            _write(b"\n" + MARKER.format(self._dropped + part).encode() + b"\n")
            tail = tail[part:]
        _write(tail)


def _write(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


def run(limit: int, argv: list[str]) -> int:
    """Run a command to its end. A child that it leaves behind may hold the pipe open, and is not waited for."""
    kept = _Kept(limit)
    # Exit by an exception, so that the tail is written where the command is ended from outside.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        # Ours was made for the command, and holds nothing else.
        command = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=dict(os.environ))
        _copy(command, kept)
    except OSError as error:
        _write(f"{argv[0]} cannot be started: {error.strerror}\n".encode())
        return 127
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        kept.finish()
    code = command.wait()
    return code if code >= 0 else 128 - code


def _copy(command: "subprocess.Popen[bytes]", kept: _Kept) -> None:
    if command.stdout is None:
        raise AssertionError
    pipe = command.stdout.fileno()
    while True:
        has_ended = command.poll() is not None
        is_ready = bool(select.select([pipe], [], [], 0 if has_ended else POLL_S)[0])
        if has_ended and not is_ready:
            return
        chunk = os.read(pipe, CHUNK) if is_ready else b""
        if is_ready and not chunk:
            return
        kept.add(chunk)


if __name__ == "__main__":
    sys.exit(run(int(sys.argv[1]), sys.argv[2:]))
