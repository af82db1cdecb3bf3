"""The process that carries a model's pieces from or to a bucket, so that it can be killed: imports nothing of ours.

Its job is one line of JSON on stdin, with addresses that are secrets: they go into no argv, no log and no answer. What
came of it is JSON in the job's `answer` file. It ends when stdin does, so it never outlives the one that started it.
"""

import errno
import json
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NoReturn

import httpx2

WORKERS = 8  # files, or pieces of them, at a time
BLOCK = 4 << 20
WAIT_S, WAIT_MAX_S = 0.5, 16.0  # before a request is made again; doubled each time
TIMEOUT = httpx2.Timeout(30.0, connect=10.0)
OK, PART = 200, 206
GONE = (404, 410, 416)  # there is no such object, or it is shorter than it was
PASSING = (408, 429, 500, 502, 503, 504)

Job = dict[str, Any]


class RefusedError(Exception):
    """The bucket turns us away, as it would the next time."""


class GaveUpError(Exception):
    """Nothing more is asked of the bucket."""


class DamagedError(Exception):
    """One object is not there, or not as it was put there; others may be."""


class Carrier:
    """Makes requests until one is answered, or gives up; the first that gives up ends all."""

    def __init__(self, tries: int) -> None:
        self._tries = tries
        self._is_over = threading.Event()
        self.why: str | None = None  # nothing more is asked for
        limits = httpx2.Limits(max_connections=WORKERS, max_keepalive_connections=WORKERS)
        self._client = httpx2.Client(timeout=TIMEOUT, limits=limits)

    def steadily(self, ask: Callable[[httpx2.Client], bool]) -> None:
        """Ask until it is done; GaveUpError after so many tries in a row without a new byte."""
        wait_s, failed = WAIT_S, 0
        while not self._is_over.is_set():
            try:
                if ask(self._client):
                    return
                wait_s, failed = WAIT_S, 0
            except httpx2.HTTPError as error:
                failed += 1
                if failed >= self._tries:
                    self._give_up(_said(error))
                self._is_over.wait(wait_s)
                wait_s = min(2 * wait_s, WAIT_MAX_S)
            except RefusedError as error:
                self._give_up(str(error))
        raise GaveUpError

    def _give_up(self, why: str) -> NoReturn:
        self.why = self.why or why
        self._is_over.set()
        raise GaveUpError


def check(answer: httpx2.Response) -> None:
    """Raise what a bucket's refusal means: an error that passes, an object that is not as it was, or the end."""
    status = answer.status_code
    if status in (OK, PART):
        return
    if status in GONE:
        raise DamagedError(f"the bucket answered {status}")
    if status in PASSING:
        raise httpx2.RemoteProtocolError(f"the bucket answered {status}")
    raise RefusedError(f"the bucket answered {status}")


def get(job: Job) -> Job:
    """Every file of the job, each piece after piece; what came whole moves to its name in the job's folder.

    A file that a killed process began is gone on with.
    """
    carrier, damaged = Carrier(job["tries"]), dict[str, str]()

    def one(file: Job) -> None:
        arriving = Path(job["arriving"]) / file["name"]
        arriving.parent.mkdir(parents=True, exist_ok=True)
        try:
            with arriving.open("ab", buffering=BLOCK) as sink:
                for piece in file["pieces"]:
                    carrier.steadily(lambda client, piece=piece: _get_more(client, piece, sink))  # type: ignore[misc]  # the piece of this round
            final = Path(job["folder"]) / file["name"]
            final.parent.mkdir(parents=True, exist_ok=True)
            arriving.replace(final)
        except DamagedError as error:
            damaged[file["name"]] = str(error)
        except GaveUpError:
            return  # what arrived of it is gone on with

    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(one, job["files"]))
    return {"damaged": damaged, "why": carrier.why}


def _get_more(client: httpx2.Client, piece: Job, sink: Any) -> bool:
    """Append what is missing of a piece; whether it is whole now. DamagedError where the object is not that long."""
    have = sink.tell() - piece["start"]
    left = piece["size"] - have
    if left <= 0:
        return True
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    with client.stream("GET", piece["url"], headers=headers) as answer:
        check(answer)
        if have and answer.status_code == OK:  # it knows no ranges
            sink.seek(sink.truncate(piece["start"]))
            left = piece["size"]
        if int(answer.headers.get("Content-Length", left)) != left:
            raise DamagedError(f"a piece of {piece['size']} bytes has another length")
        try:
            for block in answer.iter_raw():
                left -= sink.write(block)
        except httpx2.HTTPError:
            if sink.tell() - piece["start"] > have:
                return False  # it came further than before
            raise
    if left:
        raise DamagedError(f"a piece of {piece['size']} bytes has another length")
    return True


def put(job: Job) -> Job:
    """Every piece of the job, several at a time; the first that cannot be put ends it."""
    carrier, sent = Carrier(job["tries"]), Counter(Path(job["sent"]))

    def one(piece: Job) -> None:
        path = Path(job["folder"]) / piece["file"]
        # An address takes one piece and is signed for it; its length is told, since S3 takes no chunked body.
        headers = {"Content-Length": str(piece["size"])}

        def ask(client: httpx2.Client) -> bool:
            content = _blocks(path, piece["start"], piece["size"], sent)
            try:
                check(client.put(piece["url"], content=content, headers=headers))
            except DamagedError as error:  # there is no such bucket
                raise RefusedError(str(error)) from error
            return True

        try:
            carrier.steadily(ask)
            sent.keep(piece["size"])
        except GaveUpError:
            return  # why is the carrier's to say

    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(one, job["pieces"]))
    return {"bytes": sent.kept, "why": carrier.why}


class Counter:
    """Counts bytes on their way into a file, where whoever watches us sees that there are more; and those that came."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._path = path
        self._moved = self.kept = 0

    def moved(self, count: int) -> None:
        """So many bytes more went out."""
        with self._lock:
            self._moved += count
            self._path.write_text(str(self._moved), "utf-8")

    def keep(self, count: int) -> None:
        """So many bytes more are there."""
        with self._lock:
            self.kept += count


def _blocks(path: Path, start: int, size: int, sent: Counter) -> Iterator[bytes]:
    with path.open("rb") as source:
        source.seek(start)
        while size and (block := source.read(min(BLOCK, size))):
            size -= len(block)
            yield block
            sent.moved(len(block))


def _said(error: Exception) -> str:
    """An error's words on one line, without what a signed address carries after its question mark."""
    return re.sub(r"(https?://[^\s?]+)\?\S+", r"\1", f"{type(error).__name__}: {' '.join(str(error).split())}")[:500]


VERBS: Mapping[str, Callable[[Job], Job]] = {"get": get, "put": put}


def _end_with_parent() -> None:
    sys.stdin.read()
    os._exit(3)


def main() -> None:
    """Do the job on stdin and leave its answer; a disk that is full is said, any other error crashes and is logged."""
    job = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        answer = VERBS[job["verb"]](job)
    except OSError as error:
        kind = "disk-full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "other"
        answer = {"failed": kind, "said": _said(error)}
    Path(job["answer"]).write_text(json.dumps(answer), "utf-8")
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
