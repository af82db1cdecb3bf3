"""From a request to its answer: the fault plan, the token, the rate limits, then the route."""

import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from email.utils import formatdate

from tests.emulators.digitalocean import routes
from tests.emulators.digitalocean.faults import AFTER, LIE, Fault, FaultPlan
from tests.emulators.digitalocean.limits import Limiter
from tests.emulators.digitalocean.replies import RefusalError, Reply, Request, not_found, refuse
from tests.emulators.digitalocean.routing import Call, find
from tests.emulators.digitalocean.world import State

DELIVERY = {
    "close": "close",
    "close_after": "close",
    "silence": "silence",
    "silence_after": "silence",
    "truncated": "truncated",
    "empty": "empty",
    "garbage": "garbage",
}
MESSAGES = {500: "Unexpected server-side error", 503: "Service Unavailable"}
ALL_SCOPES = frozenset({"*"})

routes.load()


@dataclass
class Logged:
    """One call and what was answered; `status` is None where no answer was sent."""

    at: float
    method: str
    path: str
    query: dict[str, str]
    status: int | None
    client_request_id: str | None
    user_agent: str
    fault: str | None


@dataclass
class Api:
    """The whole cloud without its wires; one call at a time."""

    state: State
    now_s: Callable[[], float]
    pass_s: Callable[[float], None]  # a virtual clock moves on with each call, and while nothing is answered
    base: str = ""
    tokens: dict[str, frozenset[str]] = field(default_factory=dict)
    others: dict[str, State] = field(default_factory=dict)  # what the tokens of other accounts see
    plan: FaultPlan = field(default_factory=FaultPlan)
    limiter: Limiter = field(default_factory=Limiter)
    log: list[Logged] = field(default_factory=list)
    request_s: float = 0.1
    silence_s: float = 60.0
    lock: threading.RLock = field(default_factory=threading.RLock)
    observe: Callable[[Request, Reply], None] | None = None
    before_reply: Callable[[Request], None] | None = None  # when a call has had its effect and nobody knows it yet

    def answer(self, request: Request) -> Reply:
        with self.lock:
            self.pass_s(self.request_s)
            for state in (self.state, *self.others.values()):
                state.advance(self.now_s())
            fault = self.plan.strike(request.method, request.path)
            reply = self._struck(request, fault) if fault else self._admitted(request)
            self._finish(request, reply, fault)
            if self.observe is not None:
                self.observe(request, reply)
            if self.before_reply is not None:
                self.before_reply(request)
            return reply

    def _struck(self, request: Request, fault: Fault) -> Reply:
        if fault.phase == LIE:
            return Reply(204, is_fault=True)
        reply = self._admitted(request) if fault.phase in AFTER else None
        if reply is None or fault.phase == "after":
            reply = refuse(fault.status, MESSAGES.get(fault.status, "An error occurred."))
            reply.body = reply.body if fault.body is None else fault.body
        if fault.retry_after is not None:
            reply.headers["retry-after"] = f"{fault.retry_after:g}"
        reply.delivery = DELIVERY.get(fault.phase, "whole")
        reply.is_fault = True
        if reply.delivery == "silence":
            self.pass_s(self.silence_s)
        return reply

    def _admitted(self, request: Request) -> Reply:
        scopes = self.tokens.get(request.token)
        if scopes is None:
            return refuse(401, "Unable to authenticate you.")
        lists_keys = (request.method, request.path) == ("GET", "/v2/account/keys")
        refused = self.limiter.admit(request.token, self.state.now, lists_keys=lists_keys)
        if refused is not None:
            return refused
        try:
            return self._routed(request, scopes)
        except RefusalError as refusal:
            return refusal.reply

    def _routed(self, request: Request, scopes: frozenset[str]) -> Reply:
        found = find(request.method, request.path)
        if found is None:
            raise not_found()
        route, parts = found
        if scopes != ALL_SCOPES and route.scope not in scopes:
            return refuse(403, "You do not have permission to perform this action.")
        return route.answer(Call(self.others.get(request.token, self.state), request, self.base, parts))

    def _finish(self, request: Request, reply: Reply, fault: Fault | None) -> None:
        reply.headers = {
            "content-type": "application/json; charset=utf-8",
            "x-request-id": str(uuid.uuid4()),
            "date": formatdate(self.state.now, usegmt=True),
            **self.limiter.headers(request.token, self.state.now),
            **reply.headers,
        }
        heard = reply.status if reply.delivery not in {"close", "silence"} else None
        self.log.append(
            Logged(
                self.state.now,
                request.method,
                request.path,
                request.query,
                heard,
                request.headers.get("x-ms-client-request-id"),
                request.headers.get("user-agent", ""),
                None if fault is None else fault.phase,
            )
        )
