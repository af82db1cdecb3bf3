"""Stands in for the issues of one project on GitHub or on GitLab, with chosen faults.

Paths, headers, fields and status codes are those of docs.github.com/en/rest/issues/issues (version 2022-11-28), of
docs.github.com/en/rest/using-the-rest-api/troubleshooting-the-rest-api (403 with `x-ratelimit-remaining: 0`, 404 for
what a token does not see) and of docs.gitlab.com/api/issues (401 `{"message":"401 Unauthorized"}`). An answer has the
fields of the examples there that a client of issues reads, beside some that it does not.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal
from urllib.parse import parse_qs, urlsplit

Site = Literal["github", "gitlab"]
PROJECT = {"github": "/api/v3/repos/team/nights", "gitlab": "/api/v4/projects/team%2Fnights"}
Answer = tuple[int, object, dict[str, str]]
REFUSED = {"message": "Bad credentials", "documentation_url": "https://docs.github.com/rest", "status": "401"}
LIMITED = {"x-ratelimit-limit": "5000", "x-ratelimit-remaining": "0", "x-ratelimit-reset": "1795676400"}


@dataclass
class TrackerEmulator:
    """One project with its issues, oldest first; `fault` is the answer to each request until it is taken away."""

    site: Site
    token: str = "tracker-token-of-tests"  # noqa: S105 - nobody's
    url: str = ""
    issues: list[dict[str, Any]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)  # method and path of each request
    fault: Answer | None = None
    is_hanging: bool = False
    loses_answers: bool = False  # does what it is asked, and closes the connection without an answer
    is_over: threading.Event = field(default_factory=threading.Event)

    @property
    def states(self) -> list[tuple[str, str]]:
        """Title and state of each issue."""
        return [(one["title"], one["state"]) for one in self.issues]

    def text(self, at: int) -> str:
        return str(self.issues[at]["body" if self.site == "github" else "description"])

    def close_by_hand(self, at: int) -> None:
        self.issues[at]["state"] = "closed"

    def answer(self, method: str, path: str, token: str | None, body: dict[str, Any]) -> Answer:
        """The answer of the site, as its documents have it."""
        parts = urlsplit(path)
        self.asked.append(f"{method} {parts.path}")
        if self.fault is not None:
            return self.fault
        if token != f"Bearer {self.token}":
            return 401, REFUSED if self.site == "github" else {"message": "401 Unauthorized"}, {}
        if not parts.path.startswith(PROJECT[self.site]):
            return self._missing("Project")
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        return self._route(method, parts.path.removeprefix(PROJECT[self.site]).split("/")[1:], query, body)

    def _route(self, method: str, path: list[str], query: dict[str, str], body: dict[str, Any]) -> Answer:
        match (method, path):
            case ("POST", ["issues"]):
                return self._create(body)
            case ("GET", ["issues"]):
                return self._list(query)
            case (("PATCH" | "PUT"), ["issues", number]) if (method == "PATCH") == (self.site == "github"):
                return self._edit(int(number), body)
        return self._missing("Route")

    def _create(self, body: dict[str, Any]) -> Answer:
        if self.site == "github":
            if set(body) != {"title", "body"} or len(body["title"]) > 256 or len(body["body"]) > 65536:
                return 422, {"message": "Validation Failed", "errors": []}, {}
            made = {"number": len(self.issues) + 1, "state": "open", "state_reason": None, "body": body["body"]}
        else:
            if set(body) != {"title", "description"} or len(body["title"]) > 255:
                return 400, {"message": {"title": ["is too long (maximum is 255 characters)"]}}, {}
            made = {"iid": len(self.issues) + 1, "state": "opened", "description": body["description"]}
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        self.issues.append({"id": 1000 + len(self.issues), "title": body["title"], "created_at": now, **made})
        return 201, self.issues[-1], {}

    def _list(self, query: dict[str, str]) -> Answer:
        by_age = {"sort": "created", "direction": "desc"}
        if self.site == "gitlab":
            by_age = {"order_by": "created_at", "sort": "desc", "scope": "all"}
        assert query["state"] == "all"
        assert by_age.items() <= query.items()
        size, page = int(query["per_page"]), int(query["page"])
        return 200, self.issues[::-1][(page - 1) * size : page * size], {}

    def _edit(self, number: int, body: dict[str, Any]) -> Answer:
        issue = self.issues[number - 1]
        if issue["state"] == "deleted":
            return (410, {"message": "This issue was deleted"}, {}) if self.site == "github" else self._missing("Issue")
        if body.pop("state_event", None) == "close":
            body["state"] = "closed"
        issue |= body
        return 200, issue, {}

    def _missing(self, what: str) -> Answer:
        return 404, {"message": "Not Found" if self.site == "github" else f"404 {what} Not Found"}, {}


@contextmanager
def tracker(site: Site) -> Iterator[TrackerEmulator]:
    """A site of this computer."""
    state = TrackerEmulator(site)

    class Handler(BaseHTTPRequestHandler):
        def _do(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if state.is_hanging:
                state.is_over.wait()
                return
            token = self.headers["Authorization"]
            status, answer, headers = state.answer(self.command, self.path, token, json.loads(content or b"{}"))
            if state.loses_answers:
                return
            sent = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            for name, value in {"Content-Length": str(len(sent)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(sent)

        do_GET = do_POST = do_PUT = do_PATCH = _do  # noqa: N815 - the library's names

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True, kwargs={"poll_interval": 0.02}).start()
        state.url = f"http://127.0.0.1:{server.server_port}{PROJECT[site]}"
        try:
            yield state
        finally:
            state.is_over.set()
            server.shutdown()
