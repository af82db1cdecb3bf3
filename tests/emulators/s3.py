"""A bucket on loopback: moto's own server, with faults in front of it, each for so many requests.

What a fault lets through is moto's answer; who uploads and reads here is the real boto3.
"""

import os
import re
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal, Self

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

# Keys that the bucket takes, and nothing of whoever runs the tests.
KEYS = {
    "AWS_ACCESS_KEY_ID": "tester",
    "AWS_SECRET_ACCESS_KEY": "very-secret-words",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
}
Kind = Literal["slow-down", "error", "silence", "denied", "corrupt", "cut", "no-range", "lost"]
Environ = dict[str, Any]
SLOW_DOWN = "<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
UNMET = SLOW_DOWN.replace("SlowDown", "PreconditionFailed")
STATUS = {"slow-down": "503 Slow Down", "error": "500 Internal Server Error", "denied": "403 Forbidden"}
BODY = {
    "slow-down": SLOW_DOWN,
    "error": SLOW_DOWN.replace("SlowDown", "InternalError"),
    "denied": SLOW_DOWN.replace("SlowDown", "AccessDenied"),
}


@dataclass
class Fault:
    """What happens instead to the next `times` requests of this method to a path that fits."""

    kind: Kind
    method: str
    path: re.Pattern[str]
    times: int
    seconds: float
    is_over: threading.Event = field(default_factory=threading.Event)


@dataclass
class Bucket:
    """A running server with one bucket; leaves with its thread at the end of the block.

    `served` hears of each part of a cached file that somebody reads: the file and its size in bytes.
    """

    name: str = "nights"
    refuses_checksums: bool = False  # as many that speak S3 do
    ignores_conditions: bool = False  # of writes, as some do
    faults: list[Fault] = field(default_factory=list)
    requests: list[tuple[str, str]] = field(default_factory=list)
    ranges: list[str] = field(default_factory=list)  # that were asked for
    served: Callable[[str, int], None] = lambda _name, _size: None

    def __enter__(self) -> Self:
        self._moto = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True, request_handler=_Quiet)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()
        # moto keeps what it stores for as long as its process lives.
        for method, path in (("POST", "moto-api/reset"), ("PUT", self.name)):
            asked = urllib.request.Request(f"{self.endpoint}/{path}", data=b"", method=method)  # noqa: S310 - loopback
            urllib.request.urlopen(asked, timeout=10).close()  # noqa: S310
        self.requests.clear()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.relent()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def fault(
        self, kind: Kind, *, method: str = "PUT", path: str = ".*", times: int = 10**9, seconds: float = 0
    ) -> None:
        self.faults.append(Fault(kind, method, re.compile(path), times, seconds))

    def relent(self) -> None:
        """Let go of whoever is kept waiting, and strike nobody from now on."""
        while self.faults:
            self.faults.pop().is_over.set()

    def puts(self) -> list[str]:
        """The objects that were uploaded, in the order in which they were whole."""
        done = [path for method, path in self.requests if method in ("PUT", "POST") and "partNumber" not in path]
        return [path.partition("?")[0].removeprefix(f"/{self.name}/") for path in done if "uploads" not in path]

    def _answer(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        method = environ["REQUEST_METHOD"]
        path = environ["PATH_INFO"] + (f"?{environ['QUERY_STRING']}" if environ["QUERY_STRING"] else "")
        fault = next((one for one in self.faults if self._fits(one, method, path)), None)
        if fault is not None:
            fault.times -= 1
            if fault.kind == "silence":
                fault.is_over.wait(fault.seconds)
            if fault.kind in STATUS:
                return _say(environ, start_response, STATUS[fault.kind], BODY[fault.kind])
            if fault.kind == "no-range":
                environ.pop("HTTP_RANGE", None)
            if fault.kind == "corrupt":
                environ["HTTP_X_AMZ_META_SHA256"] = "0" * 64
        refused = self._refused(environ)
        if refused is not None:
            return _say(environ, start_response, *refused)
        self.requests.append((method, path))
        self.ranges += [environ["HTTP_RANGE"]] if "HTTP_RANGE" in environ else []
        carry_out = self._lost if fault is not None and fault.kind == "lost" else self._moto
        answered = self._counted(environ, carry_out(environ, start_response))
        if fault is not None and fault.kind == "cut":
            whole = b"".join(answered)
            return [whole[: len(whole) // 2]]  # of what its headers promise
        return answered

    def _counted(self, environ: Environ, answered: Iterable[bytes]) -> Iterable[bytes]:
        """The same answer, heard by `served` if it is a part of a file."""
        _, is_file, name = environ["PATH_INFO"].partition("/files/")
        if environ["REQUEST_METHOD"] != "GET" or not is_file:
            return answered
        whole = b"".join(answered)
        self.served(name, len(whole))
        return [whole]

    def _lost(self, environ: Environ, start_response: Callable[..., Any]) -> list[bytes]:
        """Carry a request out, and answer that it failed."""
        list(self._moto(environ, lambda *_arguments: None))
        return _say(environ | {"CONTENT_LENGTH": "0"}, start_response, STATUS["error"], BODY["error"])

    def _refused(self, environ: Environ) -> tuple[str, str] | None:
        """Status and body with which stores refuse what Amazon's takes; None if this one is taken."""
        if self.refuses_checksums and _has_checksum(environ):
            return "501 Not Implemented", SLOW_DOWN.replace("SlowDown", "NotImplemented")
        if environ["REQUEST_METHOD"] == "PUT" and self.ignores_conditions:
            environ.pop("HTTP_IF_NONE_MATCH", None)
            environ.pop("HTTP_IF_MATCH", None)
        if environ["REQUEST_METHOD"] == "PUT" and '"' in environ.get("HTTP_IF_MATCH", ""):
            return "412 Precondition Failed", UNMET  # Spaces takes it for another ETag
        return None

    @staticmethod
    def _fits(fault: Fault, method: str, path: str) -> bool:
        return fault.times > 0 and fault.method in (method, "*") and fault.path.search(path) is not None


def _has_checksum(environ: Environ) -> bool:
    named = any(
        name.startswith(("HTTP_X_AMZ_CHECKSUM", "HTTP_X_AMZ_SDK_CHECKSUM", "HTTP_X_AMZ_TRAILER")) for name in environ
    )
    return named or "aws-chunked" in environ.get("HTTP_CONTENT_ENCODING", "")


def _say(environ: Environ, start_response: Callable[..., Any], status: str, body: str) -> list[bytes]:
    environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    start_response(status, [("Content-Type", "application/xml")])
    return [] if environ["REQUEST_METHOD"] == "HEAD" else [body.encode()]


class _Quiet(WSGIRequestHandler):
    """Says nothing on standard error."""

    def log(self, type: str, message: str, *args: Any) -> None:  # noqa: A002 - as its base names it
        """Keep quiet."""


if __name__ == "__main__":  # for who needs it in a process of its own: it serves until its input ends
    with Bucket(sys.argv[1]) as bucket:
        sys.stdout.write(f"{bucket.endpoint}\n")
        sys.stdout.flush()
        sys.stdin.read()
