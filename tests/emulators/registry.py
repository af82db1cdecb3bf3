"""Stands in for an image registry: the pull half of the OCI distribution specification 1.1, with chosen faults.

Manifests by tag and by digest, blobs behind a redirect as large registries serve them, anonymous tokens, and errors in
the specification's form. What it is not told to have is MANIFEST_UNKNOWN or NAME_UNKNOWN.
"""

import gzip
import hashlib
import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Literal, Self
from urllib.parse import parse_qs, urlsplit

Fault = Literal["busy", "denied", "other-digest", "not-json", "basic", "endless", "cut"]
INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
CONFIG = "application/vnd.oci.image.config.v1+json"
GZIP = b"\x1f\x8b"
TOKEN = "anonymous-pull"  # noqa: S105 - of nobody


def digest_of(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


@dataclass
class RegistryEmulator:
    """A registry on loopback; `push` gives it an image, `faults` are spent one a request, `requests` is what came.

    `served` hears of each layer that somebody pulls: its digest and its size in bytes.
    """

    requests: list[str] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    is_open: bool = False  # whether it asks for no token
    served: Callable[[str, int], None] = lambda _digest, _size: None

    def __post_init__(self) -> None:
        self.tags: dict[tuple[str, str], str] = {}  # repository and tag -> digest
        self.stored: dict[str, tuple[str, bytes]] = {}  # digest -> media type and content
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.registry = self
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def host(self) -> str:
        """The first part of a reference to its images."""
        return f"127.0.0.1:{self._server.server_port}"

    def push(
        self,
        repository: str,
        tag: str,
        labels: dict[str, str],
        architecture: str = "amd64",
        layers: Sequence[bytes] = (),
        environment: Sequence[str] = (),
    ) -> str:
        """Let a tag name an image with these labels, of one platform; returns the digest of its index.

        A real docker can run it where each of its layers is a gzip archive of tar; `environment` is `NAME=value`.
        """
        contents = [gzip.decompress(layer) if layer.startswith(GZIP) else layer for layer in layers]
        files = {"type": "layers", "diff_ids": [digest_of(content) for content in contents]}
        run = {"Labels": labels, "Env": list(environment)}
        config = self._store(CONFIG, {"architecture": architecture, "os": "linux", "config": run, "rootfs": files})
        stored = [self._keep(LAYER, layer) for layer in layers]
        image = {"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": stored}
        manifest = self._store(MANIFEST, image)
        # What builders add beside the image: its platform is of no machine.
        extra = self._store(MANIFEST, {"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [{}]})
        listed = [
            extra | {"platform": {"os": "unknown", "architecture": "unknown"}},
            manifest | {"platform": {"os": "linux", "architecture": architecture}},
        ]
        index = self._store(INDEX, {"schemaVersion": 2, "mediaType": INDEX, "manifests": listed})
        self.tags[repository, tag] = str(index["digest"])
        return self.tags[repository, tag]

    def _store(self, media_type: str, value: dict[str, Any]) -> dict[str, Any]:
        return self._keep(media_type, json.dumps(value).encode())

    def _keep(self, media_type: str, content: bytes) -> dict[str, Any]:
        self.stored[digest_of(content)] = (media_type, content)
        return {"mediaType": media_type, "digest": digest_of(content), "size": len(content)}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    registry: RegistryEmulator


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's own name
        """Stay quiet: `requests` is the log."""

    def do_GET(self) -> None:
        registry = self.server.registry
        asked = urlsplit(self.path)
        registry.requests.append(self.path)
        fault = registry.faults.pop(0) if registry.faults else None
        if fault is not None:
            self._fail(fault)
        elif asked.path == "/token":
            scope = parse_qs(asked.query).get("scope", [""])[0]
            is_ours = scope.startswith("repository:") and scope.endswith(":pull")
            self._json(200 if is_ours else 400, {"token": TOKEN, "expires_in": 300} if is_ours else {})
        elif asked.path.startswith("/cdn/"):
            self._blob(asked.path.removeprefix("/cdn/"))
        elif not registry.is_open and self.headers.get("authorization") != f"Bearer {TOKEN}":
            self._challenge(asked.path)
        else:
            self._pull(asked.path)

    def _pull(self, path: str) -> None:
        repository, _, rest = path.removeprefix("/v2/").rpartition("/manifests/")
        if repository:
            self._manifest(repository, rest)
        elif "/blobs/" in path:
            self._send(307, {"Location": f"http://{self.server.registry.host}/cdn/{path.rpartition('/')[2]}"}, b"")
        else:
            self._error(404, "NAME_UNKNOWN", "repository name not known to registry")

    def _manifest(self, repository: str, reference: str) -> None:
        registry = self.server.registry
        digest = registry.tags.get((repository, reference), reference)
        if repository not in {name for name, _tag in registry.tags}:
            self._error(404, "NAME_UNKNOWN", "repository name not known to registry")
        elif digest not in registry.stored:
            self._error(404, "MANIFEST_UNKNOWN", "manifest unknown")
        elif registry.stored[digest][0] not in ", ".join(self.headers.get_all("accept", ())):
            self._error(404, "MANIFEST_UNKNOWN", "OCI index found, but accept header does not support OCI indexes")
        else:
            media_type, content = registry.stored[digest]
            self._send(200, {"Content-Type": media_type, "Docker-Content-Digest": digest}, content)

    def _blob(self, digest: str) -> None:
        if "authorization" in self.headers and self.server.registry.is_open:
            self._error(400, "DENIED", "a token is not to be sent elsewhere")
            return
        media_type, content = self.server.registry.stored[digest]
        if media_type == LAYER:
            self.server.registry.served(digest, len(content))
        self._send(200, {"Content-Type": "application/octet-stream"}, content)

    def _challenge(self, path: str) -> None:
        repository = path.removeprefix("/v2/").rpartition("/")[0].rpartition("/")[0]
        realm = f'realm="http://{self.server.registry.host}/token",service="emulator"'
        challenge = {"WWW-Authenticate": f'Bearer {realm},scope="repository:{repository}:pull"'}
        self._error(401, "UNAUTHORIZED", "authentication required", challenge)

    def _fail(self, fault: Fault) -> None:
        if fault == "busy":
            self._error(429, "TOOMANYREQUESTS", "too many requests")
        elif fault == "denied":
            self._error(403, "DENIED", "requested access to the resource is denied")
        elif fault == "basic":
            self._error(401, "UNAUTHORIZED", "authentication required", {"WWW-Authenticate": 'Basic realm="here"'})
        elif fault == "other-digest":
            self._send(200, {"Content-Type": INDEX, "Docker-Content-Digest": digest_of(b"other")}, b"{}")
        elif fault == "not-json":
            self._send(200, {"Content-Type": "text/html"}, b"<html>a proxy's page</html>")
        elif fault == "endless":
            self._send(200, {"Content-Type": INDEX}, b" " * (5 * 1024**2))
            self.close_connection = True  # the client hangs up first
        else:
            self.close_connection = True

    def _error(self, status: int, code: str, message: str, headers: dict[str, str] | None = None) -> None:
        self._json(status, {"errors": [{"code": code, "message": message}]}, headers)

    def _json(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        self._send(status, {"Content-Type": "application/json", **(headers or {})}, json.dumps(body).encode())

    def _send(self, status: int, headers: dict[str, str], content: bytes) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        try:
            self.wfile.write(content)
        except OSError:  # the client read as much as it takes
            self.close_connection = True
