"""Ask an image registry what a tag names now, by the OCI distribution specification; nothing is pulled.

The registry's host is the first part of the reference, as in `registry.example/team/image:tag`. Registries that let
anybody read give an anonymous token, for which this asks; others are refused.
"""

import hashlib
import re
from dataclasses import dataclass

import httpx2

from bench.errors import EngineBuildError
from bench.foreign_json import entries, first, members, parse
from bench.printable import printable
from bench.suite.engine import tag_of
from infra.clock import Clock, SystemClock, finish_within, retry

TIMEOUT = httpx2.Timeout(30.0, connect=10.0)
ANSWER_S = 60.0  # for one whole answer
TRIES_S, PAUSE_S = 60.0, 5.0  # of one request, where the registry is busy or cannot be reached
BODY_MAX = 4 * 1024**2  # the specification's limit of a manifest
INDEXES = ("application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json")
MANIFESTS = ("application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json")
PLATFORM = {"os": "linux", "architecture": "amd64"}  # of every machine with a GPU that is rented
VERSION, COMMIT = "org.opencontainers.image.version", "org.opencontainers.image.revision"
LOOPBACK = re.compile(r"(localhost|127(\.\d+){3})(:\d+)?")  # as docker, which uses HTTP for these only
DIGEST = re.compile(r"[a-z0-9]+(?:[+._-][a-z0-9]+)*:[0-9A-Za-z=_-]+")  # of the specification
BUSY = (429, 500, 502, 503, 504)


@dataclass(frozen=True)
class ResolvedImage:
    """What a tag names now; `version` and `commit` are labels of the image, None where it has none."""

    name: str  # repository@sha256:digest
    version: str | None = None
    commit: str | None = None


class _BusyError(Exception):
    """The registry could not be reached, or asks to come back later."""


def resolve_tag(image: str, clock: Clock | None = None) -> ResolvedImage:
    """What the tag of `host/repository:tag` names now; without a tag, `latest`.

    Raises EngineBuildError with the registry's message: no such repository or tag, no access, no answer.
    """
    named, tag = image, tag_of(image) or "latest"
    host, _, repository = named.removesuffix(f":{tag}").partition("/")
    if not repository or not ("." in host or ":" in host or host == "localhost"):
        raise EngineBuildError(
            f"{image} names no registry, so its tag cannot be resolved: write the registry's host before it, "
            "or give the digest, as in image@sha256:..."
        )
    scheme = "http" if LOOPBACK.fullmatch(host) else "https"
    with httpx2.Client(base_url=f"{scheme}://{host}", timeout=TIMEOUT, follow_redirects=True) as client:
        return _Repository(client, repository, image, clock or SystemClock()).resolve(f"{host}/{repository}", tag)


@dataclass
class _Repository:
    client: httpx2.Client
    repository: str
    image: str  # as the suite has it
    clock: Clock
    token: str | None = None

    def resolve(self, name: str, tag: str) -> ResolvedImage:
        body, digest = self._manifest(tag)
        labels = self._labels(body)
        return ResolvedImage(f"{name}@{digest}", labels.get(VERSION), labels.get(COMMIT))

    def _manifest(self, reference: str) -> tuple[dict[str, object], str]:
        """A manifest or an index, and its digest, which is computed and not believed."""
        content, told = self._get(f"manifests/{reference}", ", ".join(INDEXES + MANIFESTS))
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        if (told or digest) != digest or (reference.startswith("sha256:") and reference != digest):
            raise EngineBuildError(f"{self.image}: the registry calls a manifest {told}, but its digest is {digest}")
        return self._parsed(content), digest

    def _labels(self, manifest: dict[str, object]) -> dict[str, str]:
        """The labels of the image for this platform; none where the manifest has no such image."""
        if "manifests" in manifest:
            every = map(members, entries(manifest["manifests"]))
            fitting = [one.get("digest") for one in every if _is_ours(members(one.get("platform")))]
            if not fitting:
                raise EngineBuildError(f"{self.image} has no image for linux/amd64: choose another tag")
            manifest, _digest = self._manifest(self._digest(fitting[0]))
        content, _told = self._get(f"blobs/{self._digest(members(manifest.get('config')).get('digest'))}", "*/*")
        labels = members(members(self._parsed(content).get("config")).get("Labels"))
        return {printable(name): printable(str(value)) for name, value in labels.items()}

    def _digest(self, value: object) -> str:
        """A digest that a manifest names."""
        if not (isinstance(value, str) and DIGEST.fullmatch(value)):
            raise EngineBuildError(f"{self.image}: a manifest of the registry names the digest {str(value)[:100]!r}")
        return value

    def _parsed(self, content: bytes) -> dict[str, object]:
        try:
            value = parse(content)
        except ValueError as error:
            raise EngineBuildError(f"{self.image}: the registry's answer is not JSON: {error}") from error
        if not isinstance(value, dict):
            raise EngineBuildError(f"{self.image}: the registry's answer is not a JSON object: {content[:200]!r}")
        return value

    def _get(self, path: str, accept: str) -> tuple[bytes, str | None]:
        def once() -> tuple[bytes, str | None]:
            return self._once(path, accept)

        try:
            return retry(self.clock, PAUSE_S, once, (_BusyError,), TRIES_S)
        except _BusyError as error:
            raise EngineBuildError(f"{self.image}: the registry does not answer: {error}; try again later") from error

    def _once(self, path: str, accept: str) -> tuple[bytes, str | None]:
        """One request, and once more with the token for which a registry sends its clients away."""
        headers = {"Accept": accept} | ({"Authorization": f"Bearer {self.token}"} if self.token else {})
        status, content, answer = self._send(f"/v2/{self.repository}/{path}", headers)
        if status == httpx2.codes.UNAUTHORIZED and self.token is None:
            self.token = self._new_token(answer.get("www-authenticate", ""))
            return self._once(path, accept)
        if status != httpx2.codes.OK:
            raise EngineBuildError(f"{self.image} cannot be resolved: {_advice(status)} ({_message(content, status)})")
        return content, answer.get("docker-content-digest")

    def _new_token(self, challenge: str) -> str:
        words = dict(re.findall(r'(\w+)="([^"]*)"', challenge))
        realm = words.pop("realm", "")
        is_safe = realm.startswith("https://") or LOOPBACK.match(realm.removeprefix("http://"))
        if not (challenge.lower().startswith("bearer ") and is_safe):
            raise EngineBuildError(f"{self.image}: its registry demands a login: give the image's digest in the suite")
        status, content, _headers = self._send(str(httpx2.URL(realm, params=words)), {})
        answer = self._parsed(content) if status == httpx2.codes.OK else {}
        token = answer.get("token") or answer.get("access_token")
        if not token:
            raise EngineBuildError(f"{self.image}: {_advice(status)} ({_message(content, status)})")
        return str(token)

    def _send(self, url: str, headers: dict[str, str]) -> tuple[int, bytes, httpx2.Headers]:
        try:
            return finish_within(ANSWER_S, lambda: self._answer(url, headers))
        except TimeoutError as error:
            raise _BusyError(f"no complete answer to GET {url} after {ANSWER_S:g} s") from error

    def _answer(self, url: str, headers: dict[str, str]) -> tuple[int, bytes, httpx2.Headers]:
        try:
            with self.client.stream("GET", url, headers=headers) as answer:
                content = b""
                for piece in answer.iter_bytes():
                    content += piece
                    if len(content) > BODY_MAX:
                        raise EngineBuildError(f"{self.image}: the registry's answer is larger than {BODY_MAX} bytes")
        except httpx2.HTTPError as error:
            raise _BusyError(f"{type(error).__name__}: {error}") from error
        if answer.status_code in BUSY:
            raise _BusyError(_message(content, answer.status_code))
        return answer.status_code, content, answer.headers


def _is_ours(platform: dict[str, object]) -> bool:
    return all(platform.get(name) == value for name, value in PLATFORM.items())


def _message(content: bytes, status: int) -> str:
    """The registry's own words, in the specification's form where it keeps to it."""
    try:
        error = first(members(parse(content)).get("errors"))
    except ValueError:
        error = {}
    return f"{error['code']}: {error.get('message', '')}" if "code" in error else f"HTTP {status}"


def _advice(status: int) -> str:
    if status == httpx2.codes.NOT_FOUND:
        return "its registry has no such repository or tag: check both"
    if status in (httpx2.codes.UNAUTHORIZED, httpx2.codes.FORBIDDEN):
        return "its registry denies access without a login: give the image's digest in the suite"
    return "its registry refuses the request"
