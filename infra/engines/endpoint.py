"""Attach to a server that already runs: learn from its first answers what it takes, and start or change nothing."""

import http.client
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench.engines import endpoint as engine
from bench.errors import ServerStartError
from bench.foreign_json import entries, members, parse, text
from bench.loadgen.drivers.target import ClientHost
from bench.server_facts import EndpointFacts
from bench.suite.endpoint import Endpoint
from infra.engines.attached import Attached
from infra.engines.engine_at import EngineAt
from infra.engines.first_probe import FirstAnswer, send
from infra.engines.http_client import Origin
from infra.engines.secret_environment import key_variable
from infra.engines.server import RunningServer
from infra.reporting import Say
from meter.connection import Endpoint as MeterEndpoint
from meter.connection import keep_answering, resolve
from meter.errors import OutsideWorldError, UsageError
from meter.head import between, retry_after_s

NOT_OURS = EngineAt(engine.EXECUTABLE, None, name=engine.NAME)
TIMEOUT_S = 120.0
PAGE_TIMEOUT_S = 10.0
TOKENS = 2  # of each first answer: they may be billed
EMBEDDINGS = "embeddings"
FORMS: Mapping[str, tuple[str, Mapping[str, object]]] = {
    "tokens": ("/v1/completions", {"prompt": [1000, 1001, 1002], "max_tokens": TOKENS}),
    "text": ("/v1/completions", {"prompt": "ready?", "max_tokens": TOKENS}),
    "chat": (
        "/v1/chat/completions",
        {"messages": [{"role": "user", "content": "ready?"}], "max_completion_tokens": TOKENS},
    ),
    EMBEDDINGS: ("/v1/embeddings", {"input": "ready?"}),
}
_REDIRECT, _CLIENT_ERROR = range(300, 400), range(400, 500)
_PROXIES = ("http_proxy", "https_proxy", "all_proxy")


@dataclass(frozen=True)
class AttachRequest:
    """A server to attach to: its URL, what the suite knows of it, and the forms of prompts that the suite needs."""

    url: str
    known: Endpoint
    model: str
    forms: tuple[str, ...]
    log: Path
    hosts: tuple[ClientHost, ...] = ()  # that send the load; none: this one


@dataclass(frozen=True)
class _Learnt:
    """What the first answers show; `refused` has the answer to each form that is not taken."""

    forms: dict[str, FirstAnswer]
    refused: dict[str, FirstAnswer]
    takes: tuple[str, ...]


def attach(request: AttachRequest, say: Say) -> RunningServer:
    """Attach to a server; ServerStartError says in plain words why it cannot be measured."""
    origin = Origin(request.url, request.known.ca_file, key_variable(request.known))
    found = _resolve(request)
    pages = _pages(origin, request)
    learnt = _learn(origin, request, pages)
    facts = _facts(request, found, learnt, pages)
    request.log.parent.mkdir(parents=True, exist_ok=True)
    request.log.write_text(f"{request.url} is not ours, so its log is unknown; its first answers show:\n{facts!r}\n")
    say(f"attached to {request.url}: {len(facts.addresses)} addresses, prompts as {', '.join(facts.forms)}")
    for name, why in facts.unknown.items():
        say(f"not known of it: {name}: {why}")
    attached = Attached(
        origin,
        health="/health" if pages["/health"] is not None else "/v1/models",
        has_metrics="metrics" not in facts.unknown,
        body={**engine.REQUEST_BODY, **dict.fromkeys(learnt.takes, True)},
        facts=facts,
        hosts=request.hosts,
    )
    server = RunningServer(None, 0, None, request.log, (), {}, NOT_OURS, cold_start_s=None, attached=attached)
    return replace(server, keeps_connections=facts.keeps_connections)


def _resolve(request: AttachRequest) -> MeterEndpoint:
    try:
        return keep_answering(resolve(request.url, wants_stamps=False, ca_file=request.known.ca_file))
    except (OutsideWorldError, UsageError) as error:
        raise ServerStartError(str(error)) from error


def _pages(origin: Origin, request: AttachRequest) -> dict[str, str | None]:
    """The text of each page that some engine has; None where it does not answer with 200."""
    found: dict[str, str | None] = {}
    for path in ("/v1/models", "/health", "/metrics", *engine.FACT_PAGES):
        status, text = _get(origin, path)
        if path == "/v1/models":
            _require_access(request, origin, status, text)
        found[path] = text if status == http.client.OK else None
    return found


def _get(origin: Origin, path: str) -> tuple[int, str]:
    try:
        return origin.ask("GET", path, None, PAGE_TIMEOUT_S)
    except OSError as error:
        raise ServerStartError(f"no answer from {origin.url}: {origin.explain(error)}") from error


def _require_access(request: AttachRequest, origin: Origin, status: int, text: str) -> None:
    if status in {http.client.UNAUTHORIZED, http.client.FORBIDDEN}:
        said = f"does not accept the API key in {origin.api_key_env}" if origin.api_key_env else "needs an API key"
        raise ServerStartError(f"{request.url} {said} (HTTP {status}): set it in the environment: {text[:200]}")
    if status in _REDIRECT:
        raise ServerStartError(f"{request.url} redirects (HTTP {status}): give the URL that answers as --target")
    if status != http.client.OK:
        raise ServerStartError(
            f"{request.url} does not speak the OpenAI API: /v1/models has HTTP {status}: {text[:200]}"
        )
    served = _served(request, text)
    if request.model not in served:
        raise ServerStartError(
            f"{request.url} does not serve {request.model!r}; it serves {', '.join(served) or 'nothing'}: set "
            "model in the suite's [endpoint]"
        )


def _served(request: AttachRequest, answer: str) -> list[str]:
    try:
        data = members(parse(answer)).get("data")
    except ValueError:
        data = None
    names = [text(members(one).get("id")) for one in entries(data)]
    if not isinstance(data, list) or None in names:
        raise ServerStartError(
            f"{request.url} does not speak the OpenAI API: /v1/models has no list of models with an id: {answer[:200]}"
        )
    return [name for name in names if name is not None]


def _learn(origin: Origin, request: AttachRequest, pages: Mapping[str, str | None]) -> _Learnt:
    """Send each form of prompt once, then each parameter that not every server takes."""
    forms: dict[str, FirstAnswer] = {}
    refused: dict[str, FirstAnswer] = {}
    embeds = EMBEDDINGS in request.forms
    for name in FORMS:
        if embeds != (name == EMBEDDINGS):
            continue  # a server has one runner: it gives vectors, or text
        answer = _send(origin, request.model, name, {})
        (forms if answer.status == http.client.OK and ("data:" in answer.text or embeds) else refused)[name] = answer
    _require_forms(request, forms, refused)
    form = request.forms[0]
    if embeds:
        return _Learnt(forms, refused, ())
    return _Learnt(forms, refused, tuple(name for name in engine.MAYBE if _takes(origin, request, form, name, pages)))


def _send(origin: Origin, model: str, form: str, more: Mapping[str, object]) -> FirstAnswer:
    path, body = FORMS[form]
    streamed = {"stream": True, "stream_options": {"include_usage": True}, **engine.REQUEST_BODY}
    whole = {"model": model, **body, **({} if form == EMBEDDINGS else streamed)}
    try:
        answer = send(origin, path, {**whole, **more}, TIMEOUT_S)
    except OSError as error:
        raise ServerStartError(f"the first request to {origin.url} failed: {origin.explain(error)}") from error
    if answer.status == http.client.TOO_MANY_REQUESTS:
        wait_s = retry_after_s(answer.headers)
        raise ServerStartError(
            f"{origin.url} limits the rate already before the load (HTTP 429, retry after {wait_s} s): measure later"
        )
    return answer


def _require_forms(request: AttachRequest, good: Collection[str], refused: Mapping[str, FirstAnswer]) -> None:
    for form in request.forms:
        if form in refused:
            answer = refused[form]
            raise ServerStartError(
                f"{request.url} takes no prompts as {form} (HTTP {answer.status}: {answer.text[:200]}); "
                f"set prompts.form in the suite to one that it takes: {', '.join(good) or 'none of them'}"
            )


def _takes(origin: Origin, request: AttachRequest, form: str, name: str, pages: Mapping[str, str | None]) -> bool:
    """Whether a server knows a parameter. Many ignore what they do not know, so being answered is not enough.

    An engine that shows itself by its pages knows it; another one must refuse a value of the wrong kind, or use it.
    """
    answer = _send(origin, request.model, form, {name: True})
    if answer.status != http.client.OK:
        return False
    if name == "return_token_ids":
        return '"token_ids"' in answer.text
    if any(pages[page] is not None for page in engine.FACT_PAGES if page != "/v1/models"):
        return True
    return _send(origin, request.model, form, {name: "neither"}).status in _CLIENT_ERROR


def _facts(
    request: AttachRequest, found: MeterEndpoint, learnt: _Learnt, pages: Mapping[str, str | None]
) -> EndpointFacts:
    first = learnt.forms[request.forms[0]]
    return EndpointFacts(
        url=request.url,
        addresses=tuple(map(str, found.addresses)),
        forms=tuple(learnt.forms),
        takes=learnt.takes,
        keeps_connections=first.keeps_connection,
        between=between(first.headers),
        unused_proxies=unused_proxies(),
        unknown=dict(_unknown(learnt, pages)),
        known=request.known,
    )


def unused_proxies() -> tuple[str, ...]:
    """The variables of this process that name a proxy: the load connects directly all the same."""
    return tuple(name for lower in _PROXIES for name in (lower, lower.upper()) if os.environ.get(name))


def _unknown(learnt: _Learnt, pages: Mapping[str, str | None]) -> Sequence[tuple[str, str]]:
    """What is NULL in the rows of this server, and why."""
    said: list[tuple[str, str]] = [("start, log and telemetry of the server", "its machine is not ours")]
    if not engine.counters(pages["/metrics"] or ""):
        said.append(("metrics", "/metrics does not answer with the counters of an engine that is known"))
    if engine.read_facts(_parsed(pages))[0] is None:
        said.append(("version", f"no page of {', '.join(engine.FACT_PAGES)} says it"))
    if "ignore_eos" not in learnt.takes and EMBEDDINGS not in learnt.forms:
        said.append(("planned output length", "the server does not know ignore_eos, so answers end where they end"))
    return said


def _parsed(pages: Mapping[str, str | None]) -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = {}
    for path in engine.FACT_PAGES:
        try:
            found[path] = members(parse(pages[path] or "{}"))
        except ValueError:
            found[path] = {}
    return found
