"""The process that downloads a model's parts from a bucket or uploads them, so that it can be killed.

Of our own code it imports child_protocol alone. The presigned URLs in its job are secrets: they reach it by stdin, and
appear in no argv, log or answer.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

import httpx2

from infra.models.child_protocol import OTHER, Job, Result, TransferFailure, describe, os_error_kind, serve

WORKERS = 8  # files or parts at a time
BLOCK = 4 << 20
WAIT_S, WAIT_MAX_S = 0.5, 16.0  # before a request is repeated; doubled each time
TIMEOUT = httpx2.Timeout(30.0, connect=10.0)
OK, PARTIAL = 200, 206
GONE = (404, 410, 416)  # the object does not exist, or is shorter than it was
TRANSIENT = (408, 429, 500, 502, 503, 504)


class RefusedError(Exception):
    """The bucket refuses the request, and would refuse it again."""


class GaveUpError(Exception):
    """No further request is sent to the bucket."""


class DamagedError(Exception):
    """One object is missing or differs from what was uploaded; others may be good."""


class Requests:
    """Repeats requests until they succeed or it gives up; once one gives up, all do."""

    def __init__(self, tries: int) -> None:
        self._tries = tries
        self._is_over = threading.Event()
        self.why: str | None = None  # why it gave up
        limits = httpx2.Limits(max_connections=WORKERS, max_keepalive_connections=WORKERS)
        self._client = httpx2.Client(timeout=TIMEOUT, limits=limits)

    def repeat(self, request: Callable[[httpx2.Client], bool]) -> None:
        """Call `request` until it returns True; GaveUpError after `tries` errors in a row without a new byte."""
        wait_s, failed = WAIT_S, 0
        while not self._is_over.is_set():
            try:
                if request(self._client):
                    return
                wait_s, failed = WAIT_S, 0
            except httpx2.HTTPError as error:
                failed += 1
                if failed >= self._tries:
                    self._give_up(describe(error))
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
    """Raise what an error status means: an HTTPError to retry, a DamagedError or a RefusedError."""
    status = answer.status_code
    if status in (OK, PARTIAL):
        return
    if status in GONE:
        raise DamagedError(f"the bucket answered {status}")
    if status in TRANSIENT:
        raise httpx2.RemoteProtocolError(f"the bucket answered {status}")
    raise RefusedError(f"the bucket answered {status}")


def get(job: Job) -> Result:
    """Download every file of the job, its parts in order; a whole file moves to its name in the job's folder.

    A file that a killed process began is continued.
    """
    requests, damaged = Requests(job["tries"]), dict[str, str]()

    def one(file: Job) -> None:
        arriving = Path(job["arriving"]) / file["name"]
        arriving.parent.mkdir(parents=True, exist_ok=True)
        try:
            with arriving.open("ab", buffering=BLOCK) as sink:
                for part in file["parts"]:
                    requests.repeat(lambda client, part=part: _get_more(client, part, sink))  # type: ignore[misc]  # the part of this round
            final = Path(job["folder"]) / file["name"]
            final.parent.mkdir(parents=True, exist_ok=True)
            arriving.replace(final)
        except DamagedError as error:
            damaged[file["name"]] = str(error)
        except GaveUpError:
            return  # the next process continues the file

    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(one, job["files"]))
    return {"damaged": damaged, "why": requests.why}


def _get_more(client: httpx2.Client, part: Job, sink: Any) -> bool:
    """Append the missing bytes of a part; True once it is whole. DamagedError if the object has another size."""
    have = sink.tell() - part["start"]
    left = part["size"] - have
    if left <= 0:
        return True
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    with client.stream("GET", part["url"], headers=headers) as answer:
        check(answer)
        if have and answer.status_code == OK:  # the server ignores ranges
            sink.seek(sink.truncate(part["start"]))
            left = part["size"]
        if int(answer.headers.get("Content-Length", left)) != left:
            raise DamagedError(f"a part of {part['size']} bytes has another size in the bucket")
        try:
            for block in answer.iter_raw():
                left -= sink.write(block)
        except httpx2.HTTPError:
            if sink.tell() - part["start"] > have:
                return False  # new bytes arrived before the error
            raise
    if left:
        raise DamagedError(f"a part of {part['size']} bytes has another size in the bucket")
    return True


def put(job: Job) -> Result:
    """Upload every part of the job, several at a time; the first that cannot be uploaded ends the job."""
    requests, counter = Requests(job["tries"]), Counter(Path(job["sent"]))

    def one(part: Job) -> None:
        path = Path(job["folder"]) / part["file"]
        # A presigned URL takes one part; the length is stated, since S3 accepts no chunked body.
        headers = {"Content-Length": str(part["size"])}

        def request(client: httpx2.Client) -> bool:
            content = _blocks(path, part["start"], part["size"], counter)
            try:
                check(client.put(part["url"], content=content, headers=headers))
            except DamagedError as error:  # the bucket does not exist
                raise RefusedError(str(error)) from error
            return True

        try:
            requests.repeat(request)
            counter.count_stored(part["size"])
        except GaveUpError:
            return  # `requests.why` has the reason

    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(one, job["parts"]))
    return {"bytes": counter.stored, "why": requests.why}


class Counter:
    """Counts the bytes that were sent, into a file that the parent watches, and the bytes that were stored."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._path = path
        self._sent = self.stored = 0

    def count_sent(self, count: int) -> None:
        """Add bytes that were sent, perhaps in vain."""
        with self._lock:
            self._sent += count
            self._path.write_text(str(self._sent), "utf-8")

    def count_stored(self, count: int) -> None:
        """Add bytes that the bucket has accepted."""
        with self._lock:
            self.stored += count


def _blocks(path: Path, start: int, size: int, counter: Counter) -> Iterator[bytes]:
    with path.open("rb") as source:
        source.seek(start)
        while size and (block := source.read(min(BLOCK, size))):
            size -= len(block)
            yield block
            counter.count_sent(len(block))


def explain(error: BaseException) -> TransferFailure:
    """A full disk, or any other error of the system."""
    return TransferFailure(os_error_kind(error) or OTHER, describe(error))


OPERATIONS: Mapping[str, Callable[[Job], Result]] = MappingProxyType({"get": get, "put": put})

if __name__ == "__main__":
    serve(OPERATIONS, (OSError,), explain)
