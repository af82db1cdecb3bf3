"""What is asked and what is answered, before any of it is bytes on a connection."""

import json
import uuid
from dataclasses import dataclass, field
from typing import Any

from tests.emulators.digitalocean.catalog import Json

IDS = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    409: "conflict",
    412: "precondition_failed",
    422: "unprocessable_entity",
    429: "too_many_requests",
    500: "server_error",
    503: "service_unavailable",
}
NOT_FOUND = "The resource you requested could not be found."


@dataclass
class Request:
    """One call as it came in; `path` has no query and no trailing slash."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    raw: bytes = b""

    @property
    def token(self) -> str:
        return self.headers.get("authorization", "").removeprefix("Bearer ")


@dataclass
class Reply:
    """One answer; `delivery` says whether and how it reaches the caller."""

    status: int
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    delivery: str = "whole"  # whole, close, silence, truncated, empty or garbage
    is_fault: bool = False

    def content(self) -> bytes:
        if isinstance(self.body, str):
            return self.body.encode()  # of the metadata service
        return b"" if self.body is None else json.dumps(self.body).encode()


class RefusalError(Exception):
    """A call that the cloud refuses; carries the answer."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.body)
        self.reply = reply


def refuse(status: int, message: str, **more: Any) -> Reply:
    """An error answer with the id that goes with its status."""
    body = {"id": IDS.get(status, "server_error"), "message": message, "request_id": str(uuid.uuid4()), **more}
    return Reply(status, body)


def refusal(status: int, message: str, **more: Any) -> RefusalError:
    return RefusalError(refuse(status, message, **more))


def not_found() -> RefusalError:
    return refusal(404, NOT_FOUND)


def paged(key: str, items: list[Json], request: Request, base: str) -> Reply:
    """One page of a list; 20 items by default and 200 at most."""
    per_page, page = _positive(request, "per_page", 20), _positive(request, "page", 1)
    per_page = min(per_page, 200)
    last = max(1, -(-len(items) // per_page))
    pages: Json = {}
    kept = {name: value for name, value in request.query.items() if name not in {"page", "per_page"}}

    def link(number: int) -> str:
        query = "&".join(f"{name}={value}" for name, value in {**kept, "page": number, "per_page": per_page}.items())
        return f"{base}{request.path}?{query}"

    if page > 1:
        pages |= {"first": link(1), "prev": link(page - 1)}
    if page < last:
        pages |= {"last": link(last), "next": link(page + 1)}
    shown = items[(page - 1) * per_page : page * per_page]
    return Reply(200, {key: shown, "links": {"pages": pages} if pages else {}, "meta": {"total": len(items)}})


def _positive(request: Request, name: str, default: int) -> int:
    text = request.query.get(name, str(default))
    if not text.isdigit() or int(text) < 1:
        raise refusal(400, f"invalid {name}")
    return int(text)
