"""A wire to a TCP server that refuses, resets, falls silent, says only its banner, or is cut after so many bytes."""

import contextlib
import select
import socket
import struct
import threading
from types import TracebackType
from typing import Literal, Self

BANNER = b"SSH-2.0-OpenSSH_9.6\r\n"
CHUNK = 1 << 16
Mode = Literal["pass", "refuse", "reset", "silence", "banner"]
# Closing with this sends a reset in place of a goodbye.
AT_ONCE = struct.pack("ii", 1, 0)


class Wire:
    """Passes bytes between whoever connects to `port` on loopback and a server, in one mode at a time."""

    def __init__(self, target: tuple[str, int]) -> None:
        self._target = target
        self._mode: str = "pass"
        self._left: int | None = None
        self._ends = threading.Event()
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._listener: socket.socket | None = None
        self.port = 0
        self.cuts = 0

    def __enter__(self) -> Self:
        self._listen()
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._ends.set()
        self._hang_up()
        if self._listener is not None:
            self._listener.close()

    def set(self, mode: str) -> None:
        """Behave so from now on; what is open stays open in `silence`, and is reset in every other mode."""
        self._mode = mode
        if mode == "refuse" and self._listener is not None:
            # Closing alone leaves the port open for as long as the other thread polls it.
            self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            self._listener = None
        elif mode != "refuse" and self._listener is None:
            self._listen()
        if mode not in ("pass", "silence"):
            self._hang_up()

    def cut_after(self, count: int) -> None:
        """Cut what is open, once, when so many bytes more have passed."""
        self._left = count

    def _listen(self) -> None:
        reporter = socket.socket()
        reporter.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reporter.bind(("127.0.0.1", self.port))
        reporter.listen(32)
        reporter.settimeout(0.1)
        self.port = reporter.getsockname()[1]
        self._listener = reporter

    def _accept(self) -> None:
        while not self._ends.is_set():
            reporter = self._listener
            if reporter is None:
                self._ends.wait(0.05)
                continue
            with contextlib.suppress(OSError):
                near, _ = reporter.accept()
                threading.Thread(target=self._serve, args=[near], daemon=True).start()

    def _serve(self, near: socket.socket) -> None:
        with self._lock:
            self._open.add(near)
        if self._mode in ("reset", "refuse"):
            self._reset(near)
            return
        if self._mode == "banner":
            near.sendall(BANNER)
        while self._mode in ("banner", "silence") and not self._ends.is_set():
            self._ends.wait(0.05)
        with contextlib.suppress(OSError), socket.create_connection(self._target) as far:
            self._pass_on(near, far)
        self._reset(near)

    def _pass_on(self, near: socket.socket, far: socket.socket) -> None:
        other = {near: far, far: near}
        while not self._ends.is_set():
            if self._mode == "silence":
                self._ends.wait(0.05)
                continue
            ready, _, _ = select.select(list(other), [], [], 0.1)
            for side in ready:
                chunk = side.recv(CHUNK)
                if not chunk or self._is_cut_by(len(chunk)):
                    return
                other[side].sendall(chunk)

    def _is_cut_by(self, count: int) -> bool:
        if self._left is None:
            return False
        self._left -= count
        if self._left > 0:
            return False
        self._left = None
        self.cuts += 1
        return True

    def _hang_up(self) -> None:
        with self._lock:
            sockets = list(self._open)
        for each in sockets:
            self._reset(each)

    def _reset(self, near: socket.socket) -> None:
        with self._lock:
            self._open.discard(near)
        with contextlib.suppress(OSError):
            near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
            near.shutdown(socket.SHUT_RDWR)
        near.close()
