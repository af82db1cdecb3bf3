"""What to send and how fast: the plan file, checked key by key before anything is sent."""

import hashlib
import json
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from meter import METER_PLAN_VERSION
from meter.embeddings import PATH as EMBEDDINGS
from meter.errors import UsageError
from meter.prompt_spec import Prompts, check_room, read_prompts
from meter.rules import COUNT, COUNT_OR_0, FLAG, OBJECT, POSITIVE, TEXT, Rule, check, one_of

# The meter writes these body keys itself.
RESERVED = frozenset(
    {"model", "prompt", "input", "messages", "max_tokens", "max_completion_tokens", "stream", "stream_options"},
)


@dataclass(frozen=True, slots=True)
class Load:
    """How requests are offered: `closed` keeps `concurrency` in flight; the others send at times fixed beforehand.

    `constant`, `poisson` and `gamma` offer `rate_per_s`, the last with gaps of this `burstiness` (the shape of their
    distribution: 1 is Poisson, lower is more bursty, higher is more even). `trace` sends at `arrivals_s`, and
    later turns of a session when they are due. `sessions` keeps `concurrency` sessions open, each with one request in
    flight or pausing.
    """

    kind: str
    concurrency: int | None = None
    rate_per_s: float | None = None
    burstiness: float | None = None
    arrivals_s: tuple[float, ...] | None = None

    @property
    def is_closed(self) -> bool:
        """Whether so many requests are always in flight."""
        return self.kind == "closed"


@dataclass(frozen=True, slots=True)
class Share:
    """Which part of a load one client host sends: that of host `number`, counted from 0, among `of` hosts."""

    number: int = 0
    of: int = 1


@dataclass(frozen=True, slots=True)
class Plan:
    """One run of the meter; `raw` is the file as parsed, and goes into the record untouched."""

    raw: dict[str, Any]
    url: str
    path: str
    model: str
    load: Load
    prompts: Prompts
    output_tokens: int
    request_count: int  # measured requests; warm-up comes on top
    warmup_count: int
    timeout_s: float  # from the start of sending to the end of the answer
    extra_body: dict[str, Any]
    workers: int  # processes that share the load, one a core
    kernel_stamps: bool
    connections: str = "kept"  # or "fresh": one for each request
    ca_file: str | None = None  # of the CAs that may sign the server's certificate; None: the system's
    api_key_env: str | None = None  # the environment variable with the key that each request carries
    models: dict[str, Any] | None = None  # `names` in place of `model`, the most popular first, and the exponent `zipf`
    cancel: dict[str, Any] | None = None  # the `share` of measured requests to cancel, between two `after_s` seconds
    answers: dict[str, Any] | None = None  # what each must be: `schema`, `pattern`, or `schema` and `tool`
    cache_block_tokens: int | None = None  # the server's prefix cache has whole blocks of so many; None: unknown
    share: Share = Share()  # of the load, where several hosts send it
    hosts: tuple[dict[str, Any], ...] = ()  # that send it: `name`, and `argv` of a shell there; none: this one

    @property
    def lanes(self) -> int:
        """The workers that share the load, on all hosts."""
        return self.workers * self.share.of

    def lane(self, worker: int) -> int:
        """The number of one of this host's workers among those of all hosts, which take turns."""
        return self.share.number + self.share.of * worker

    @property
    def is_embedding(self) -> bool:
        """Whether each request asks for a vector, and not for text."""
        return self.path == EMBEDDINGS

    @property
    def total_count(self) -> int:
        """How many requests are sent in all, warm-up included."""
        return self.warmup_count + self.request_count

    @property
    def sha256(self) -> str:
        """Hash of the plan with sorted keys and no spaces, so that layout does not count."""
        canonical = json.dumps(self.raw, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()


_PATH = Rule(
    (str,), lambda value: value.startswith("/") and value.isprintable() and " " not in value, 'a path from "/"'
)


def _is_ascending(times: list[Any]) -> bool:
    """Whether these are times of a schedule: finite numbers, from 0 up, each at or after the one before."""
    if not all(isinstance(at, (int, float)) and not isinstance(at, bool) and 0 <= at < float("inf") for at in times):
        return False
    return all(earlier <= later for earlier, later in pairwise(times))


_ARRIVALS = Rule((list,), _is_ascending, "a list of seconds from 0 up, in ascending order")
_LOADS = {
    "closed": {"concurrency": COUNT},
    "sessions": {"concurrency": COUNT},
    "constant": {"rate_per_s": POSITIVE},
    "poisson": {"rate_per_s": POSITIVE},
    "gamma": {"rate_per_s": POSITIVE, "burstiness": POSITIVE},
    "trace": {"arrivals_s": _ARRIVALS},
}
_KIND = {"kind": one_of(*_LOADS)}


def _is_origin(url: str) -> bool:
    """Whether this is http://host[:port] or https://host[:port] and nothing more."""
    try:
        parts = urlsplit(url)
        is_origin = parts.path in {"", "/"} and not parts.query and not parts.fragment and parts.username is None
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and is_origin and parts.port != 0
    except ValueError:
        return False


def _is_demand(answers: dict[str, Any]) -> bool:
    """Whether this says what an answer must be."""
    return set(answers) in ({"schema"}, {"schema", "tool"}, {"pattern"})


def _are_models(models: dict[str, Any]) -> bool:
    """Whether this names the models of the requests, and how popular each is."""
    names, zipf = models.get("names"), models.get("zipf")
    are_names = isinstance(names, list) and bool(names) and all(isinstance(name, str) and name for name in names)
    return models.keys() == {"names", "zipf"} and are_names and isinstance(zipf, (int, float)) and zipf >= 0


def _is_cancel(cancel: dict[str, Any]) -> bool:
    """Whether this says how many requests to cancel, and when."""
    after_s, share = cancel.get("after_s"), cancel.get("share")
    is_span = isinstance(after_s, list) and len(after_s) == 2 and _is_ascending(after_s)  # noqa: PLR2004
    return cancel.keys() == {"share", "after_s"} and isinstance(share, float) and 0 < share < 1 and is_span


def _is_share(share: dict[str, Any]) -> bool:
    """Whether this names a host among several."""
    number, of = share.get("number"), share.get("of")
    return share.keys() == {"number", "of"} and type(number) is int and type(of) is int and 0 <= number < of


def _are_hosts(hosts: list[Any]) -> bool:
    """Whether each host has a name of its own and the argv of a shell on it."""
    are_hosts = all(isinstance(one, dict) and one.keys() == {"name", "argv"} for one in hosts)
    return bool(hosts) and are_hosts and len({one["name"] for one in hosts}) == len(hosts)


_PLAN = {
    "meter_plan_version": one_of(METER_PLAN_VERSION),
    "url": Rule((str,), _is_origin, "http://host:port or https://host:port with nothing after it"),
    "path": _PATH,
    "model": TEXT,
    "load": OBJECT,
    "prompts": OBJECT,
    "output_tokens": COUNT,
    "request_count": COUNT,
    "warmup_count": COUNT_OR_0,
    "timeout_s": POSITIVE,
    "workers": COUNT,
    "kernel_stamps": FLAG,
    "connections": one_of("kept", "fresh", is_optional=True),
    "ca_file": replace(TEXT, is_optional=True),
    "api_key_env": replace(TEXT, is_optional=True),
    "cache_block_tokens": replace(COUNT, is_optional=True),
    "models": Rule((dict,), _are_models, "an object with names and a zipf of 0 or more", is_optional=True),
    "cancel": Rule((dict,), _is_cancel, "an object with a share and two ascending times after_s", is_optional=True),
    "answers": Rule((dict,), _is_demand, "an object with schema, pattern, or schema and tool", is_optional=True),
    "share": Rule((dict,), _is_share, "an object with a number from 0 and, above it, of", is_optional=True),
    "hosts": Rule((list,), _are_hosts, "a list of objects with a name of its own and an argv each", is_optional=True),
    "extra_body": Rule((dict,), RESERVED.isdisjoint, f"an object without the keys {', '.join(sorted(RESERVED))}"),
}


def _check_turns(plan: Plan) -> None:
    """Check that conversations are complete and each has its own slot, as a turn waits for the answer before it."""
    turns = plan.prompts.turns
    if plan.prompts.kind == "multi-turn" and plan.load.concurrency is None:
        raise UsageError(
            f"Multi-turn prompts need a closed load, not {plan.load.kind}: a turn waits for the answer before it."
        )
    if plan.request_count % turns or plan.warmup_count % turns:
        raise UsageError(f"The plan's request_count and warmup_count must be multiples of prompts.turns ({turns}).")
    if turns > 1 and plan.total_count // turns < (plan.load.concurrency or 0):
        raise UsageError(
            f"{plan.total_count // turns} conversations cannot keep {plan.load.concurrency} requests in flight."
        )


def _check_sessions(plan: Plan) -> None:
    """Check that turns with pauses have a load that waits for them, and a load of sessions has turns."""
    has_sessions = plan.prompts.kind == "multi-turn" or any("session" in one for one in plan.prompts.requests)
    if plan.load.kind == "sessions" and not has_sessions:
        raise UsageError("A load of sessions needs multi-turn prompts, or replayed ones with sessions.")
    if plan.load.is_closed and (plan.prompts.pause_s or plan.prompts.requests):
        raise UsageError("A closed load does not pause: give the load the kind sessions or trace.")


def _check_trace(plan: Plan) -> None:
    """Check that a trace has a time for each request, warm-up included."""
    arrivals_s = plan.load.arrivals_s
    if arrivals_s is not None and len(arrivals_s) != plan.total_count:
        raise UsageError(
            f"The plan's load.arrivals_s has {len(arrivals_s)} times for {plan.total_count} requests, warm-up included."
        )


def parse_plan(text: str) -> Plan:
    """Read a plan from JSON text; raises UsageError with one sentence that names the key."""
    try:
        raw = json.loads(text)
    except ValueError as error:
        raise UsageError(f"The plan is not JSON: {error}.") from error
    if not isinstance(raw, dict):
        raise UsageError("The plan must be a JSON object.")
    check(_PLAN, raw, "")
    check(_KIND | _LOADS.get(_kind_of(raw["load"]), {}), raw["load"], "load.")
    settings = {key: value for key, value in raw.items() if key != "meter_plan_version"}
    settings |= {"load": _read_load(raw["load"]), "prompts": read_prompts(raw["prompts"])}
    settings |= {"share": Share(**raw.get("share", {})), "hosts": tuple(raw.get("hosts", ()))}
    plan = Plan(raw, **settings)
    check_room(plan.prompts, plan.total_count)
    _check_turns(plan)
    _check_trace(plan)
    _check_sessions(plan)
    _check_lanes(plan)
    if plan.is_embedding and (plan.prompts.form == "chat" or plan.prompts.turns > 1 or plan.answers):
        raise UsageError("Embeddings are of prompts as tokens or text, without turns and without the plan's answers.")
    return plan


def _check_lanes(plan: Plan) -> None:
    """Check that each worker of each host has a stream of a closed loop, and a request."""
    lanes = max(plan.lanes, plan.workers * len(plan.hosts))
    by = f"{plan.workers} workers" if lanes == plan.workers else f"{lanes} workers on all hosts"
    if plan.load.concurrency is not None and plan.load.concurrency < lanes:
        raise UsageError(f"The plan's {by} cannot share {plan.load.concurrency} streams: use fewer workers.")
    if lanes > plan.workers and plan.total_count < lanes:
        raise UsageError(f"The plan's {by} cannot share {plan.total_count} requests: use fewer hosts.")


def _kind_of(load: dict[str, Any]) -> str:
    kind = load.get("kind")
    return kind if isinstance(kind, str) else ""


def _read_load(raw: dict[str, Any]) -> Load:
    if "arrivals_s" in raw:
        return Load(kind=raw["kind"], arrivals_s=tuple(map(float, raw["arrivals_s"])))
    return Load(**raw)


def read_plan(path: Path) -> Plan:
    """Read a plan file; raises UsageError when it cannot be read."""
    try:
        return parse_plan(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"The plan {path} cannot be read: {error}.") from error
