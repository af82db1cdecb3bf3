"""Stands in for a model hub: serves the files of a folder to the real huggingface_hub, with chosen faults.

One repository at one revision, as huggingface_hub 2.4 asks for it: repository, tree, HEAD and GET of files with ranges.
Files with weights are listed as large ones (sha256), the others by their git hash, as the real hub does.
"""

import hashlib
import json
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

Fault = Literal["stall", "cut", "ignore-range", "zeros", "slow", "throttle", "gated", "unauthorized", "broken", "xet"]
LARGE = (".safetensors", ".bin", ".pth")
PIECE = 64 * 1024
CREATED_AT = "2026-01-01T00:00:00.000Z"
Answer = tuple[int, dict[str, str]]


@dataclass
class Planned:
    """A fault that strikes the next `times` requests whose method and path fit; it lets `after` bytes through first."""

    fault: Fault
    path: str
    method: str
    times: int
    after: int


@dataclass(frozen=True)
class Request:
    """One request as it came; `range` is what part of the file it asked for."""

    method: str
    path: str
    range: str | None
    token: str | None


@dataclass
class HubEmulator:
    """A hub on loopback; `requests` is what was asked, `fault` plans what goes wrong.

    `served` hears of each piece of a file that is sent: the file's name and the bytes of the piece.
    """

    folder: Path
    repo: str = "org/small"
    requests: list[Request] = field(default_factory=list)
    bytes_per_s: float = 1e6  # of the fault `slow`
    listed_too: list[str] = field(default_factory=list)  # names in the tree that stand for no file
    served: Callable[[str, int], None] = lambda _name, _size: None

    def __post_init__(self) -> None:
        self._faults: list[Planned] = []
        self._lock = threading.Lock()
        self.is_over = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.hub = self
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.is_over.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def sha(self) -> str:
        """The one revision there is: it changes with the files' names and sizes."""
        listed = "".join(f"{path.relative_to(self.folder)} {path.stat().st_size}\n" for path in self.files())
        return hashlib.sha1(listed.encode(), usedforsecurity=False).hexdigest()

    def files(self) -> list[Path]:
        """The files of the repository, sorted."""
        return sorted(path for path in self.folder.rglob("*") if path.is_file())

    def fault(self, fault: Fault, path: str, *, method: str = "GET", times: int = 1, after: int = 0) -> None:
        """Plan a fault for the next requests whose path holds this pattern."""
        with self._lock:
            self._faults.append(Planned(fault, path, method, times, after))

    def gets(self, name: str) -> list[Request]:
        """Every GET of one file's content."""
        return [one for one in self.requests if one.method == "GET" and one.path.endswith(f"/{name}")]

    def take_fault(self, asked: Request) -> Planned | None:
        """Note a request, and give the fault that strikes it."""
        with self._lock:
            self.requests.append(asked)
            for planned in self._faults:
                fits = planned.method == asked.method and re.search(planned.path, asked.path)
                if fits and planned.times > 0:
                    planned.times -= 1
                    return planned
        return None


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    hub: HubEmulator


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's own name
        """Stay quiet: `requests` is the log."""

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        token = (self.headers.get("authorization") or "").removeprefix("Bearer ") or None
        asked = Request(self.command, self.path.partition("?")[0], self.headers.get("range"), token)
        fault = self.server.hub.take_fault(asked)
        if fault is not None and (refusal := _refusal(fault.fault)) is not None:
            self._json(*refusal, {"error": refusal[1].get("X-Error-Message", fault.fault)})
        elif asked.path.startswith("/api/models/"):
            self._api(asked.path.removeprefix("/api/models/"))
        else:
            self._resolve(asked, fault)

    def _api(self, path: str) -> None:
        hub = self.server.hub
        if path.startswith(f"{hub.repo}/xet-read-token"):
            xet = {"X-Xet-Cas-Url": f"{hub.url}/cas", "X-Xet-Access-Token": "t", "X-Xet-Token-Expiration": "9999999999"}
            self._json(200, xet, {})
            return
        found = re.fullmatch(rf"{re.escape(hub.repo)}(?:/(revision|tree)/([^/]+))?/?", path)
        if found is None:
            self._json(404, {"X-Error-Code": "RepoNotFound"}, {"error": "Repository not found"})
        elif found[2] not in (None, "main", hub.sha):
            self._json(404, {"X-Error-Code": "RevisionNotFound"}, {"error": f"Invalid rev id: {found[2]}"})
        elif found[1] == "tree":
            more = [{"type": "file", "oid": "0" * 40, "size": 1, "path": name} for name in hub.listed_too]
            self._json(200, {}, [*(_listed(path, hub.folder) for path in hub.files()), *more])
        else:
            self._json(200, {}, _repository(hub))

    def _resolve(self, asked: Request, fault: Planned | None) -> None:
        hub = self.server.hub
        if asked.path.startswith("/cas"):
            self._stall()
            return
        found = re.fullmatch(rf"/{re.escape(hub.repo)}/resolve/([^/]+)/(.+)", asked.path)
        path = hub.folder / found[2] if found else hub.folder
        if found is None or not path.is_file():
            self._json(404, {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": hub.sha}, {"error": "Entry not found"})
            return
        start = _range_start(asked.range)
        if fault is not None and fault.fault == "ignore-range":
            start = 0
        size = path.stat().st_size
        headers = {
            "ETag": f'"{_etag(path)}"',
            "X-Repo-Commit": hub.sha,
            "Accept-Ranges": "bytes",
            "Content-Length": str(size - start),
        }
        if fault is not None and fault.fault == "xet":
            headers["X-Xet-Hash"] = hashlib.sha256(path.read_bytes()).hexdigest()
            headers["X-Xet-Refresh-Route"] = f"{hub.url}/api/models/{hub.repo}/xet-read-token/{hub.sha}"
        if start:
            headers["Content-Range"] = f"bytes {start}-{size - 1}/{size}"
        self._headers(206 if start else 200, headers)
        if asked.method == "GET":
            self._send(path, start, fault)

    def _send(self, path: Path, start: int, fault: Planned | None) -> None:
        sent = 0
        for piece in _pieces(path, start):
            out = bytes(len(piece)) if fault is not None and fault.fault == "zeros" else piece
            if fault is not None and fault.fault in ("stall", "cut"):
                out = out[: max(0, fault.after - sent)]
            try:
                self.wfile.write(out)
            except OSError:  # the client was killed
                self.close_connection = True
                return
            sent += len(out)
            self.server.hub.served(path.name, len(out))
            if fault is not None and self._ends(fault, sent, len(out)):
                return

    def _ends(self, fault: Planned, sent: int, last: int) -> bool:
        """Do what a fault does between two pieces, and say whether nothing comes after."""
        if fault.fault == "slow":
            return self.server.hub.is_over.wait(last / self.server.hub.bytes_per_s)
        if sent < fault.after or fault.fault not in ("stall", "cut"):
            return False
        self.close_connection = True
        if fault.fault == "stall":
            self._stall()
        return True

    def _stall(self) -> None:
        self.wfile.flush()
        self.server.hub.is_over.wait()

    def _json(self, status: int, headers: dict[str, str], body: Any) -> None:
        content = json.dumps(body).encode()
        length = {"Content-Length": str(len(content)), "Content-Type": "application/json; charset=utf-8"}
        self._headers(status, {**headers, **length})
        if self.command == "GET":
            self.wfile.write(content)

    def _headers(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()


def _refusal(fault: Fault) -> Answer | None:
    refusals: dict[str, Answer] = {
        "throttle": (429, {"Retry-After": "0", "RateLimit": '"api";r=0;t=0'}),
        "gated": (
            403,
            {
                "X-Error-Code": "GatedRepo",
                "X-Error-Message": "Access to model is restricted and you are not in the authorized list.",
            },
        ),
        "unauthorized": (401, {"X-Error-Message": "Invalid credentials in Authorization header"}),
        "broken": (500, {"X-Error-Message": "Internal Error"}),
    }
    return refusals.get(fault)


def _range_start(asked: str | None) -> int:
    found = re.match(r"bytes=(\d+)-", asked or "")
    return int(found[1]) if found else 0


def _pieces(path: Path, start: int) -> Iterator[bytes]:
    with path.open("rb") as source:
        source.seek(start)
        while piece := source.read(PIECE):
            yield piece


def git_sha1(content: bytes) -> str:
    """The hash that git gives a file's content."""
    return hashlib.sha1(b"blob %d\x00" % len(content) + content, usedforsecurity=False).hexdigest()


def _etag(path: Path) -> str:
    content = path.read_bytes()
    return hashlib.sha256(content).hexdigest() if path.suffix in LARGE else git_sha1(content)


def _listed(path: Path, folder: Path) -> dict[str, Any]:
    content = path.read_bytes()
    size, name = len(content), str(path.relative_to(folder))
    if path.suffix not in LARGE:
        return {"type": "file", "oid": git_sha1(content), "size": size, "path": name}
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{_etag(path)}\nsize {size}\n".encode()
    large = {"oid": _etag(path), "size": size, "pointerSize": len(pointer)}
    return {"type": "file", "oid": git_sha1(pointer), "size": size, "path": name, "lfs": large}


def _repository(hub: HubEmulator) -> dict[str, Any]:
    return {
        "_id": "1",
        "id": hub.repo,
        "modelId": hub.repo,
        "sha": hub.sha,
        "private": False,
        "gated": False,
        "disabled": False,
        "downloads": 0,
        "likes": 0,
        "tags": [],
        "usedStorage": 1,
        "createdAt": CREATED_AT,
        "lastModified": CREATED_AT,
        "siblings": [{"rfilename": str(path.relative_to(hub.folder))} for path in hub.files()],
    }
