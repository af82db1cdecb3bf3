"""The issues of one project on GitHub or GitLab, by their REST APIs, which differ in a few names.

GitHub: docs.github.com/en/rest/issues/issues. GitLab: docs.gitlab.com/api/issues. Both take the token as a bearer's.
The token goes to the address of the setting and nowhere else: no redirect and no address of an answer is followed.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import httpx2

from bench.errors import UsageError
from bench.foreign_json import count, entries, members, parse, text
from bench.printable import printable
from infra.clock import finish_within
from infra.settings import Settings
from meter.api_key import hide

ANSWER_S = 20.0  # for one whole answer
ANSWER_BYTES = 8 << 20  # a page of the list, whose bodies may each have 64 KiB, or on GitLab a MiB
PAGE_SIZE, PAGES = 20, 25
LOOPBACK = ("localhost", "127.0.0.1", "::1")
ADDRESSES = "https://api.github.com/repos/OWNER/NAME or https://gitlab.com/api/v4/projects/GROUP%2FNAME"

LOOK = "look whether NIGHTBENCH_TRACKER_URL is its address in the API"


class TrackerError(Exception):
    """The tracker refuses or fails; the message says why, and what to do."""


class IssueRefusedError(TrackerError):
    """It refuses this one issue and would take others."""


@dataclass(frozen=True)
class Api:
    """What the APIs call differently."""

    name: str
    number: str
    body: str
    edit: str  # method
    close: Mapping[str, str]
    newest_first: Mapping[str, str]
    headers: Mapping[str, str] = field(default_factory=dict)
    rights: str = ""


GITHUB = Api(
    "GitHub",
    number="number",
    body="body",
    edit="PATCH",
    close={"state": "closed", "state_reason": "completed"},
    newest_first={"state": "all", "sort": "created", "direction": "desc"},
    headers={"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"},
    rights="a fine-grained token of this repository with issues: read and write",
)
GITLAB = Api(
    "GitLab",
    number="iid",
    body="description",
    edit="PUT",
    close={"state_event": "close"},
    newest_first={"scope": "all", "state": "all", "order_by": "created_at", "sort": "desc"},
    rights="a project access token with the scope api and the role Reporter",
)
_PATHS = ((re.compile(r"(/.+)?/repos/[^/]+/[^/]+"), GITHUB), (re.compile(r"(/.+)?/api/v4/projects/[^/]+"), GITLAB))
_BUSY = (429, 500, 502, 503, 504)


def open_tracker(settings: Settings) -> "Tracker | None":
    """The tracker of the settings, None where there is none; UsageError for an impossible address or token."""
    if settings.tracker_url is None:
        return None
    url, token = settings.tracker_url.rstrip("/"), settings.tracker_token
    parts = urlsplit(url)
    api = next((api for path, api in _PATHS if path.fullmatch(parts.path)), None)
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)
    if api is None or not is_safe or "@" in parts.netloc or parts.query or parts.fragment:
        raise UsageError(
            f"NIGHTBENCH_TRACKER_URL must be the project's address in the API, such as {ADDRESSES}, without a login"
        )
    secret = "" if token is None else token.get_secret_value()
    if not re.fullmatch(r"[\x21-\x7e]+", secret):
        raise UsageError(f"NIGHTBENCH_TRACKER_TOKEN is not set, or has spaces: it must be {api.rights}")
    return Tracker(api, url, secret)


@dataclass(frozen=True)
class Tracker:
    """One project. Every method raises TrackerError with a sentence; each may be repeated but `create`."""

    api: Api
    url: str
    token: str = field(repr=False)

    @property
    def name(self) -> str:
        """As sentences name it."""
        return f"{self.api.name} at {urlsplit(self.url).hostname}"

    def create(self, title: str, body: str) -> int:
        """Open an issue and return its number."""
        return self._number(self._ask("POST", "/issues", {"title": title, self.api.body: body}))

    def find(self, marker: str, since: datetime) -> int | None:
        """The number of the issue whose body has the marker; None if none of the newest 500 since then has."""
        for page in range(1, PAGES + 1):
            issues = self._ask("GET", "/issues", query={"per_page": PAGE_SIZE, "page": page, **self.api.newest_first})
            for issue in map(members, entries(issues)):
                if marker in str(issue.get(self.api.body)):
                    return self._number(issue)
                if _created_at(issue) < since:
                    return None
            if len(entries(issues)) < PAGE_SIZE:
                return None
        return None

    def write(self, number: int, title: str, body: str, *, close: bool) -> bool:
        """Rewrite an issue, and close it; returns whether it is open then. One that was deleted is not."""
        shown = {"title": title, self.api.body: body} | (dict(self.api.close) if close else {})
        try:
            issue = members(self._ask(self.api.edit, f"/issues/{number}", shown))
        except _MissingError:
            self.require_access()
            return False
        return self._number(issue) == number and issue.get("state") != "closed"

    def require_access(self) -> None:
        """Raise TrackerError unless the token reads the project's issues; whether it writes shows with the first."""
        self._ask("GET", "/issues", query={"per_page": 1, "page": 1, **self.api.newest_first})

    def _number(self, issue: object) -> int:
        number = count(members(issue).get(self.api.number))
        if number is None:
            raise TrackerError(f"{self.name} answers something else than an issue: {LOOK}")
        return number

    def _ask(self, method: str, path: str, body: object = None, query: Mapping[str, Any] | None = None) -> object:
        """The JSON of an answer."""
        try:
            # What is sent after this deadline does no harm: its marker finds an issue that was created all the same.
            answer, content = finish_within(ANSWER_S, lambda: self._answer(method, path, body, query))
        except TimeoutError as error:
            raise TrackerError(f"{self.name} gives no complete answer in {ANSWER_S:g} s") from error
        said = self._message(content, answer)
        if not answer.is_success:
            raise _error(self, answer, said)
        try:
            return parse(content)
        except ValueError as error:
            raise TrackerError(f"{self.name} answers no JSON: {LOOK}") from error

    def _answer(
        self, method: str, path: str, body: object, query: Mapping[str, Any] | None
    ) -> tuple[httpx2.Response, bytes]:
        headers = {"Authorization": f"Bearer {self.token}", "User-Agent": "nightbench", **self.api.headers}
        content = b""
        try:
            with (
                httpx2.Client(timeout=ANSWER_S) as client,
                client.stream(method, f"{self.url}{path}", json=body, params=query, headers=headers) as answer,
            ):
                for piece in answer.iter_bytes():
                    content += piece
                    if len(content) > ANSWER_BYTES:
                        raise TrackerError(f"{self.name} answers more than {ANSWER_BYTES} bytes")
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            raise TrackerError(
                f"{self.name} cannot be reached: {type(error).__name__}: {printable(str(error))}"
            ) from error
        return answer, content

    def _message(self, content: bytes, answer: httpx2.Response) -> str:
        """The tracker's own words."""
        try:
            words = text(members(parse(content)).get("message"))
        except ValueError:
            words = None
        return hide(f"HTTP {answer.status_code}{f': {words}' if words else ''}", self.token)


class _MissingError(TrackerError):
    """There is no such thing, or the token does not see it."""


def _error(tracker: Tracker, answer: httpx2.Response, said: str) -> TrackerError:
    """What a refusal means."""
    status, name = answer.status_code, tracker.name
    is_limit = answer.headers.get("x-ratelimit-remaining") == "0" or "retry-after" in answer.headers
    if status in _BUSY or (status == httpx2.codes.FORBIDDEN and (is_limit or "rate limit" in said)):
        return TrackerError(f"{name} is busy or limits the rate of requests ({said})")
    if status in (httpx2.codes.UNAUTHORIZED, httpx2.codes.FORBIDDEN):
        return TrackerError(f"{name} refuses NIGHTBENCH_TRACKER_TOKEN ({said}): it must be {tracker.api.rights}")
    if status in (httpx2.codes.NOT_FOUND, httpx2.codes.GONE):
        return _MissingError(
            f"{name} has no such project, shows it to no such token, or has its issues off ({said}): look at "
            "NIGHTBENCH_TRACKER_URL and NIGHTBENCH_TRACKER_TOKEN"
        )
    if answer.has_redirect_location:
        return _MissingError(f"{name} says that the project has moved: set NIGHTBENCH_TRACKER_URL to its new address")
    return IssueRefusedError(f"{name} refuses it ({said})")


def _created_at(issue: Mapping[str, object]) -> datetime:
    """When it was created; now, where its time cannot be read, so that the search goes on."""
    with suppress(ValueError):
        return datetime.fromisoformat(str(issue.get("created_at"))).astimezone(UTC)
    return datetime.now(UTC)
