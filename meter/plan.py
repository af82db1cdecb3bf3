"""What to send and how fast: the plan file, checked key by key before anything is sent."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from meter import METER_PLAN_VERSION
from meter.errors import UsageError

OURS = frozenset({"model", "prompt", "max_tokens", "stream", "stream_options"})  # the meter writes these body keys


@dataclass(frozen=True, slots=True)
class Load:
    """How requests are offered: `closed` keeps `concurrency` in flight; the others send at times fixed beforehand.

    `constant`, `poisson` and `gamma` offer `rate_per_s`, the last with gaps of this `burstiness` (the shape of their
    distribution: 1 is Poisson, less comes in bursts, more is more even). `trace` sends at `arrivals_s`.
    """

    kind: str
    concurrency: int | None = None
    rate_per_s: float | None = None
    burstiness: float | None = None
    arrivals_s: tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True)
class Prompts:
    """Random token ids, `token_low` <= id < `token_high`, `input_tokens` of them in each prompt."""

    kind: str
    input_tokens: int
    token_low: int
    token_high: int
    seed: int


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

    @property
    def total_count(self) -> int:
        """How many requests are sent in all, warm-up included."""
        return self.warmup_count + self.request_count

    @property
    def sha256(self) -> str:
        """Hash of the plan with sorted keys and no spaces, so that layout does not count."""
        canonical = json.dumps(self.raw, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Rule:
    """What one key may hold; `want` completes the sentence "must be …"."""

    kinds: tuple[type, ...]
    is_good: Callable[[Any], bool]
    want: str


def _one_of(*values: object) -> Rule:
    return Rule((str, int), lambda value: value in values, " or ".join(json.dumps(value) for value in values))


_TEXT = Rule((str,), bool, "a text that is not empty")
_COUNT = Rule((int,), lambda value: value >= 1, "a whole number of 1 or more")
_COUNT_OR_0 = Rule((int,), lambda value: value >= 0, "a whole number of 0 or more")
_POSITIVE = Rule((int, float), lambda value: 0 < value < float("inf"), "a number above 0")
_OBJECT = Rule((dict,), lambda _value: True, "an object")
_PATH = Rule(
    (str,), lambda value: value.startswith("/") and value.isprintable() and " " not in value, 'a path from "/"'
)


def _is_ascending(times: list[Any]) -> bool:
    """Whether these are times of a schedule: finite numbers, from 0 up, each at or after the one before."""
    if not all(isinstance(at, (int, float)) and not isinstance(at, bool) and 0 <= at < float("inf") for at in times):
        return False
    return all(earlier <= later for earlier, later in pairwise(times))


_ARRIVALS = Rule((list,), _is_ascending, "a list of seconds from 0 up, none before the one ahead of it")
_LOADS = {
    "closed": {"concurrency": _COUNT},
    "constant": {"rate_per_s": _POSITIVE},
    "poisson": {"rate_per_s": _POSITIVE},
    "gamma": {"rate_per_s": _POSITIVE, "burstiness": _POSITIVE},
    "trace": {"arrivals_s": _ARRIVALS},
}
_KIND = {"kind": _one_of(*_LOADS)}
_PROMPTS = {
    "kind": _one_of("random"),
    "input_tokens": _COUNT,
    "token_low": _COUNT_OR_0,
    "token_high": _COUNT,
    "seed": _COUNT_OR_0,
}


def _is_plain_http(url: str) -> bool:
    """Whether this is http://host[:port] and nothing more; the meter speaks no TLS."""
    try:
        parts = urlsplit(url)
        is_origin = parts.path in {"", "/"} and not parts.query and not parts.fragment and parts.username is None
        return parts.scheme == "http" and bool(parts.hostname) and is_origin and parts.port != 0
    except ValueError:
        return False


_PLAN = {
    "meter_plan_version": _one_of(METER_PLAN_VERSION),
    "url": Rule((str,), _is_plain_http, "http://host:port with nothing after it"),
    "path": _PATH,
    "model": _TEXT,
    "load": _OBJECT,
    "prompts": _OBJECT,
    "output_tokens": _COUNT,
    "request_count": _COUNT,
    "warmup_count": _COUNT_OR_0,
    "timeout_s": _POSITIVE,
    "extra_body": Rule((dict,), OURS.isdisjoint, f"an object without the keys {', '.join(sorted(OURS))}"),
}


def _check_value(rule: Rule, value: object, where: str) -> None:
    is_kind = isinstance(value, rule.kinds) and not (isinstance(value, bool) and bool not in rule.kinds)
    if not is_kind or not rule.is_good(value):
        shown = json.dumps(value)[:80]
        raise UsageError(f"The plan's {where} must be {rule.want}, not {shown}.")


def _check(rules: Mapping[str, Rule], found: Mapping[str, Any], where: str) -> None:
    """Refuse a missing key, an unknown key and a bad value, in that order."""
    missing = [key for key in rules if key not in found]
    unknown = [key for key in found if key not in rules]
    if missing:
        raise UsageError(f"The plan lacks the key {where}{missing[0]}.")
    if unknown:
        raise UsageError(f"The plan has an unknown key {where}{unknown[0]}; known are {', '.join(sorted(rules))}.")
    for key, rule in rules.items():
        _check_value(rule, found[key], f"{where}{key}")


def _check_room_for_prompts(plan: Plan) -> None:
    """Distinct prompts must exist: (high - low) ** input_tokens of them, at least one a request."""
    span = plan.prompts.token_high - plan.prompts.token_low
    if span < 1:
        raise UsageError("The plan's prompts.token_high must be above prompts.token_low.")
    length = min(plan.prompts.input_tokens, 64)  # beyond 64 tokens two ids are already enough
    if span**length < plan.total_count:
        raise UsageError(f"The plan asks for {plan.total_count} distinct prompts, but only {span**length} exist.")


def _check_trace(plan: Plan) -> None:
    """A trace says when each request goes, warm-up included."""
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
    _check(_PLAN, raw, "")
    _check(_KIND | _LOADS.get(_kind_of(raw["load"]), {}), raw["load"], "load.")
    _check(_PROMPTS, raw["prompts"], "prompts.")
    settings = {key: value for key, value in raw.items() if key != "meter_plan_version"}
    plan = Plan(raw, **{**settings, "load": _read_load(raw["load"]), "prompts": Prompts(**raw["prompts"])})
    _check_room_for_prompts(plan)
    _check_trace(plan)
    return plan


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
