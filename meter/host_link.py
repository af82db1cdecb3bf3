"""The connection to one client host: its process here, the orders to it, and its answers with the time of each."""

import contextlib
import json
import shlex
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from typing import IO, Any

from meter.errors import OutsideWorldError
from meter.host_part import unpack

# What the host runs: the meter arrives on standard input, and its folder there is deleted however it ends.
_PROGRAM = """
import shutil, sys, tempfile
folder = tempfile.mkdtemp(prefix="meter-")
try:
    with open(folder + "/meter.pyz", "wb") as file:
        file.write(sys.stdin.buffer.read(int(sys.stdin.buffer.readline())))
    sys.path.insert(0, folder + "/meter.pyz")
    from meter.host_side import serve
    code = serve(folder)
finally:
    shutil.rmtree(folder, ignore_errors=True)
sys.exit(code)
"""
STDERR_CHARS = 400
PATIENCE_S = 5.0

Answer = dict[str, Any]
Hear = Callable[["HostLink", "Answer | None", int], None]


class HostLink:
    """One client host; `hear` is called in a thread of the link with each answer and our clock, and None at the end."""

    def __init__(self, name: str, argv: Sequence[str], hear: Hear) -> None:
        self.name = name
        self.done = 0  # requests that have ended there
        self._hear = hear
        self._wrong = ""  # what was wrong with its last answer
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 -- closed with the link
        shell = [*argv, f"python3 -I -c {shlex.quote(_PROGRAM)}"]
        try:
            self._process = subprocess.Popen(shell, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors)
        except OSError as error:
            self._errors.close()
            raise OutsideWorldError(f"The client host {name} cannot be reached: {error}.") from error
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def send(self, content: bytes) -> None:
        """Send bytes; where the connection has ended, `hear` is called with None soon."""
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.write(content)
                self._process.stdin.flush()

    def order(self, **order: Any) -> int:
        """Send a line; return our clock from before."""
        line, sent_ns = json.dumps(order).encode() + b"\n", time.monotonic_ns()
        self.send(line)
        return sent_ns

    def why_lost(self) -> str:
        """What was wrong, what ssh or the host printed last, or the exit code."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(PATIENCE_S)
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip()[-STDERR_CHARS:].splitlines()
        return self._wrong or (lines[-1] if lines else f"its connection ended with exit code {self._process.poll()}")

    def close(self) -> None:
        """End the connection; what runs on the host ends by that."""
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        try:
            self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(PATIENCE_S)
        self._errors.close()

    def _read(self) -> None:
        if self._process.stdout is None:
            raise AssertionError
        with self._process.stdout as answers:
            for line in answers:
                at_ns = time.monotonic_ns()
                try:
                    answer = json.loads(line)
                    if "row_bytes" in answer:
                        answer["part"] = unpack(answer, answers)
                except (ValueError, KeyError, TypeError, OutsideWorldError) as error:
                    self._wrong = f"its answer {line[:80]!r} is not one of a meter ({error})"
                    self._process.kill()
                    break
                self._hear(self, answer, at_ns)
        self._hear(self, None, time.monotonic_ns())
