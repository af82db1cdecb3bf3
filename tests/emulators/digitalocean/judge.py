"""Judges everything that the emulator heard and said.

The facts of facts.py judge each exchange, also where a fault strikes it. Descriptions judge one exchange of each shape,
by openapi-core: ours always, and the API's published one where it is at hand.
"""

import functools
import json
import re
from pathlib import Path
from typing import Any

from openapi_core import OpenAPI
from openapi_core.testing import MockRequest, MockResponse

from tests.data.digitalocean_openapi import make
from tests.emulators.digitalocean.catalog import Json
from tests.emulators.digitalocean.facts import CALLS, ERROR
from tests.emulators.digitalocean.replies import Reply, Request
from tests.emulators.digitalocean.routing import find
from tests.emulators.digitalocean.shapes import faults

PUBLISHED = (
    Path(__file__).parents[3] / "../shared/data/digitalocean-openapi/digitalocean-subset.corrected.json"
).resolve()
DESCRIPTIONS = ("ours", "published") if PUBLISHED.exists() else ("ours",)
HOST = "https://api.digitalocean.com"
OURS = "pydo"  # other clients' requests are their own affair: one sends `vpc_uuid: null`
# A path parameter that is a number or a text stays a text in openapi-core 0.23, and is then refused as both.
FORGIVEN = "Invalid path parameter: ssh_key_identifier"
TELLING = {"status", "type", "resource_type", "region_slug", "distribution"}  # enumerations, so values count


def described(name: str) -> Json:
    """The document of one of DESCRIPTIONS."""
    found: Json = make.description() if name == "ours" else json.loads(PUBLISHED.read_text())
    return found


@functools.cache
def description(name: str) -> OpenAPI:
    return OpenAPI.from_dict(described(name))


_passed: set[str] = set()  # shapes that this process has judged already, whichever emulator they came from


class Judge:
    """Judges by the facts at once, and by the descriptions at the end: a whole night has few shapes."""

    def __init__(self, *, by_description: bool) -> None:
        self.seen: dict[str, tuple[Request, Reply]] = {}
        self.found: list[str] = []
        self.unknown: set[str] = set()  # calls of our client that facts.py does not know
        self._by_description = by_description

    def see(self, request: Request, reply: Reply) -> None:
        found = find(request.method, request.path)
        if found is None:
            return
        if _is_ours(request):
            self._compare_with_facts(re.sub(r"{\w+}", "{}", found[0].template), request, reply)
        if self._by_description and not reply.is_fault:
            self._keep(found[0].template, request, reply)

    def _compare_with_facts(self, template: str, request: Request, reply: Reply) -> None:
        call = f"{request.method} {template}"
        if (request.method, template) not in CALLS:
            self.unknown.add(call)
            return
        asked, answered = CALLS[request.method, template]
        # A request that was refused may be wrong on purpose; one that a fault has struck was not looked at.
        if reply.status < 400 or reply.is_fault:
            said = json.loads(request.raw) if request.raw else None
            self.found += [f"{call}: request{why}" for why in faults(said, asked, is_closed=True)]
        if not reply.is_fault:
            kind = ERROR if reply.status >= 400 else answered
            self.found += [f"{call} {reply.status}: reply{why}" for why in faults(reply.body, kind)]

    def _keep(self, template: str, request: Request, reply: Reply) -> None:
        asked = _shape(json.loads(request.raw)) if request.raw and reply.status < 400 else ""
        key = f"{request.method} {template} {sorted(request.query)} {reply.status} {asked} {_shape(reply.body)}"
        if key not in _passed:
            self.seen.setdefault(key, (request, reply))

    def rule(self) -> None:
        """Raise AssertionError with every violation."""
        found = [
            sentence
            for request, reply in self.seen.values()
            for name in DESCRIPTIONS
            for sentence in violations(request, reply, name)
        ]
        if self.found or found:
            raise AssertionError("against the API's description: " + "; ".join([*self.found, *found]))
        _passed.update(self.seen)


def _is_ours(request: Request) -> bool:
    return OURS in request.headers.get("user-agent", OURS)


def violations(request: Request, reply: Reply, name: str) -> list[str]:
    """What is wrong with an exchange by one of DESCRIPTIONS.

    A refused request may be wrong on purpose, so only its answer is judged.
    """
    headers = {name: value for name, value in request.headers.items() if name != "host"}
    content_type = headers.get("content-type", "application/json").partition(";")[0]
    asked = MockRequest(
        HOST, request.method.lower(), request.path, args=request.query, headers=headers, data=request.raw or None,
        content_type=content_type,
    )  # fmt: skip
    answered = MockResponse(reply.content(), status_code=reply.status, content_type="application/json")
    found = []
    for side, *parts in _sides(request, reply, answered):
        try:
            getattr(description(name), side)(asked, *parts)
        except Exception as error:  # noqa: BLE001 - openapi-core raises of many kinds, and each one is a violation
            if FORGIVEN not in str(error):
                why = f"{error} {error.__cause__ or ''}"
                found.append(f"{request.method} {request.path} {reply.status}: {side} of {name}: {why}")
    return found


def _sides(request: Request, reply: Reply, answered: MockResponse) -> list[tuple[Any, ...]]:
    """What to judge, with what it takes: every answer, and the requests of the client that this project uses."""
    sides: list[tuple[Any, ...]] = [("validate_response", answered)] if reply.status != 204 else []
    return [*sides, ("validate_request",)] if _is_ours(request) and reply.status < 400 else sides


def _shape(body: Any, name: str = "") -> str:
    """The kinds of a body's parts; equal shapes are judged alike."""
    if isinstance(body, dict):
        parts: Json = {key: _shape(value, key) for key, value in sorted(body.items())}
        return str(parts)
    if isinstance(body, list):
        return str(sorted({_shape(one) for one in body}))
    return str(body) if name in TELLING else type(body).__name__
