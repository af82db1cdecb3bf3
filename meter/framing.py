"""Where an HTTP/1.1 answer ends, decided read by read, and which of its bytes are body.

Walking through the chunks of a stream costs more than receiving them. While the clock runs, the reads of a chunked body
are only looked at for the answer's last bytes; `settle` walks through them afterwards, and whoever was taken in by
something that looked like an end is found out then.
"""

import re

HEAD_LIMIT = 65_536  # bytes; a longer head or size line is not HTTP
_STATUS = re.compile(rb"HTTP/1\.([01]) (\d{3})(?: [^\r\n]*)?\r\n")
_HEADER = re.compile(rb"([^:\r\n]+):[ \t]*([^\r\n]*?)[ \t]*\r\n")
_FIRST_SIZE = re.compile(rb"([0-9a-fA-F]{1,15})[ \t]*(?:;[^\r\n]*)?\r\n")
_NEXT_SIZE = re.compile(rb"\r\n([0-9a-fA-F]{1,15})[ \t]*(?:;[^\r\n]*)?\r\n")  # with the end of the chunk before it
_TRAILER = re.compile(rb"(?:[^\r\n]+\r\n)*\r\n")
_LAST_CHUNK = b"\r\n0\r\n"  # of a chunked body, with the end of the chunk before it
_USUAL_END = _LAST_CHUNK + b"\r\n"  # without trailers
_EVENT_END = b"}\n\n\r\n"  # how nearly every read ends: an event of JSON, and its chunk; no answer ends so
_MAY_GO_ON = frozenset(b"\r\n0")  # first byte of a read that may hold the rest of a last chunk
_INFORMATIONAL = range(100, 200)
_NO_CONTENT = frozenset({204, 304})


class Framing:
    """One answer as it arrives. It looks at no content and works for any split of the bytes over reads."""

    __slots__ = (
        "_left",
        "_offset",
        "_pending",
        "_size",
        "_skipped",
        "_walk",
        "broken",
        "head_end",
        "is_complete",
        "keeps_alive",
        "segments",
        "status",
    )

    def __init__(self) -> None:
        self.status: int | None = None
        self.head_end: int | None = None  # offset just after the head
        self.segments: list[tuple[int, int]] = []  # body bytes, as ranges of offsets from the answer's first byte
        self.is_complete = False
        self.keeps_alive = False
        self.broken: str | None = None  # why this is not HTTP
        self._pending = b""  # bytes that could not be understood yet; nearly always empty
        self._offset = 0  # of the first pending byte
        self._left = 0  # body bytes to come in this chunk, or in this answer
        self._size = _FIRST_SIZE
        self._skipped: list[bytes] | None = None  # reads of a chunked body that were not walked through yet
        self._walk = self._walk_head

    def feed(self, data: bytes) -> bool:
        """Take the next read; True once the answer is complete or cannot be HTTP."""
        if self._skipped is None:
            return self._feed(data)
        self._skipped.append(data)
        if data.endswith(_EVENT_END):
            return False  # looking for more in every read would cost as much as the rest of this method
        if _LAST_CHUNK not in data and data[0] not in _MAY_GO_ON and not data.endswith(b"\r\n\r\n"):
            return False
        if data.endswith(_USUAL_END):
            self.is_complete = True
            return True
        return self.settle()

    def settle(self) -> bool:
        """Parse what was skipped; True if the answer is complete or cannot be HTTP."""
        if self._skipped is not None:
            skipped, self._skipped = b"".join(self._skipped), None
            self.is_complete = False
            self._feed(skipped)
        return self.is_complete or self.broken is not None

    def _feed(self, data: bytes) -> bool:
        self._pending += data
        self._walk()
        is_over = self.is_complete or self.broken is not None
        if not is_over and self._walk == self._walk_chunks:
            self._skipped = []
        return is_over

    def close(self) -> bool:
        """Take the end of the connection; True if that completes the answer."""
        self.is_complete = self.is_complete or (self._walk == self._walk_to_close and self.broken is None)
        self.keeps_alive = False
        return self.is_complete

    def _advance(self, at: int) -> None:
        self._pending = self._pending[at:]
        self._offset += at

    def _complete(self) -> None:
        """End the answer; extra bytes after it mean that the connection cannot be reused."""
        self.is_complete = True
        self.keeps_alive = self.keeps_alive and not self._pending

    def _wait_or_break(self, at: int, what: str) -> None:
        """Wait for more bytes, unless a whole line, or far too much, is already here."""
        rest = self._pending[at:]
        is_next = self._size is _NEXT_SIZE
        is_whole = b"\r\n" in rest[2 * is_next :]
        is_off = is_next and not b"\r\n".startswith(rest[:2])
        if is_whole or is_off or len(rest) > HEAD_LIMIT:
            self.broken = f"{what}: {rest[:60]!r}"

    def _walk_head(self) -> None:
        end = self._pending.find(b"\r\n\r\n")
        if end < 0:
            is_http = self._pending[:7] == b"HTTP/1."[: len(self._pending)]
            self.broken = None if is_http and len(self._pending) < HEAD_LIMIT else f"not HTTP: {self._pending[:60]!r}"
            return
        head = self._pending[: end + 2]
        status = _STATUS.match(head)
        if status is None:
            self.broken = f"not an HTTP status line: {head[:60]!r}"
            return
        self._advance(end + 4)
        if int(status[2]) in _INFORMATIONAL:
            self._walk()
            return
        self.status, self.head_end = int(status[2]), self._offset
        headers = {name.lower(): value for name, value in _HEADER.findall(head, status.end())}
        self.keeps_alive = status[1] == b"1" and headers.get(b"connection", b"").lower() != b"close"
        self._choose_body(headers)

    def _choose_body(self, headers: dict[bytes, bytes]) -> None:
        length = headers.get(b"content-length")
        if self.status in _NO_CONTENT:
            self._complete()
        elif headers.get(b"transfer-encoding", b"").lower() == b"chunked":
            self._walk = self._walk_chunks
        elif length is None:
            self._walk, self.keeps_alive = self._walk_to_close, False
        elif length.isdigit():
            self._walk, self._left = self._walk_length, int(length)
        else:
            self.broken = f"not a length: {length[:60]!r}"
        if not self.is_complete and self.broken is None:
            self._walk()

    def _take_body(self, at: int) -> int:
        taken = min(self._left, len(self._pending) - at)
        if taken:
            self.segments.append((self._offset + at, self._offset + at + taken))
            self._left -= taken
        return at + taken

    def _walk_length(self) -> None:
        self._advance(self._take_body(0))
        if self._left == 0:
            self._complete()

    def _walk_to_close(self) -> None:
        self._left = len(self._pending)
        self._advance(self._take_body(0))

    def _walk_chunks(self) -> None:
        at = 0
        while True:
            if self._left:
                at = self._take_body(at)
                if self._left:
                    break
            size = self._size.match(self._pending, at)
            if size is None:
                self._wait_or_break(at, "not a chunk size")
                break
            at, self._left, self._size = size.end(), int(size[1], 16), _NEXT_SIZE
            if self._left == 0:
                self._walk = self._walk_trailer
                break
        self._advance(at)
        if self._walk == self._walk_trailer:
            self._walk_trailer()

    def _walk_trailer(self) -> None:
        trailer = _TRAILER.match(self._pending)
        if trailer is not None:
            self._advance(trailer.end())
            self._complete()
        elif len(self._pending) > HEAD_LIMIT:
            self.broken = f"the trailer is longer than {HEAD_LIMIT} bytes"
