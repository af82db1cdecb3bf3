"""Units as tables print them: `(tokens/sec)`, `tps/gpu`, `per sec`, `USD per 1M tokens`, `ms`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

_PLAIN = (  # in this order, on lower-case text; each brings one word to one spelling
    (re.compile(r"µ|μ"), "u"),
    (re.compile(r"\bper\b"), "/"),
    (re.compile(r"\s+"), ""),
    (re.compile(r"tokens?|toks"), "tok"),
    (re.compile(r"\btps\b|\bt/s\b"), "tok/s"),
    (re.compile(r"\b(?:qps|rps)\b"), "req/s"),
    (re.compile(r"\b(?:requests?|queries|query|samples?|reqs)\b"), "req"),
    (re.compile(r"/(?:seconds?|secs?)\b"), "/s"),
    (re.compile(r"\b(?:hours?|hr)\b"), "h"),
    (re.compile(r"/(?:users?|req|stream)$"), "/user"),
    (re.compile(r"/(?:gpus?|devices?|cards?|chips?|accelerators?|npus?)\b"), "/gpu"),
    (re.compile(r"tflops?"), "tflop"),
    (re.compile(r"\$"), "usd"),
    (re.compile(r"/(?:1m|1million|million|m)tok|/mtok"), "/mtok"),
)
_GIB = 2**30
UNITS: Mapping[str, tuple[str, float]] = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), ("s", 1.0)),
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds"), ("s", 0.001)),
    **dict.fromkeys(("us", "usec", "microseconds"), ("s", 1e-06)),
    **dict.fromkeys(("ns", "nanoseconds"), ("s", 1e-09)),
    **dict.fromkeys(("min", "minutes"), ("s", 60.0)),
    "ms/tok": ("s/tok", 1e-3),
    "s/tok": ("s/tok", 1.0),
    "tok/s": ("tok/s", 1.0),
    "ktok/s": ("tok/s", 1e3),
    "mtok/s": ("tok/s", 1e6),
    "tok/min": ("tok/s", 1 / 60),
    "tok/s/gpu": ("tok/s/gpu", 1.0),
    "tok/gpu/s": ("tok/s/gpu", 1.0),
    "tok/s/user": ("tok/s/user", 1.0),
    "req/s": ("req/s", 1.0),
    "req/min": ("req/s", 1 / 60),
    "/s": ("/s", 1.0),
    **dict.fromkeys(("tflop/s/gpu", "tflop/gpu", "tflop/gpu/s"), ("tflop/s/gpu", 1.0)),
    "tflop/s": ("tflop/s", 1.0),
    "tflop": ("tflop/s", 1.0),
    "usd": ("usd", 1.0),
    "usd/mtok": ("usd/mtok", 1.0),
    "usd/h": ("usd/h", 1.0),
    "usd/gpu/h": ("usd/h/gpu", 1.0),
    "gb": ("gib", 1e9 / _GIB),
    "gib": ("gib", 1.0),
    "mb": ("gib", 1e6 / _GIB),
    "mib": ("gib", 2.0**-10),
    "%": ("share", 0.01),
    **dict.fromkeys(("x", "\u00d7", "times"), ("times", 1.0)),
    **dict.fromkeys(("tok", "req", "count"), ("count", 1.0)),
}
_BRACKETS = re.compile(r"[(\[]([^()\[\]]*)[)\]]")
_PER_SECOND = re.compile(
    r" per (?=s\b|secs?\b|seconds?\b|gpu\b|user\b|query\b|1m\b|million\b|hour\b|min\b)", re.IGNORECASE
)
_SLASH = re.compile(r"\s*/\s*")
_GAPS = re.compile(r"[\s_-]+")
_MILLION = re.compile(r"\b(?:1m|1 million)\b")
_WORDS_OF_A_UNIT = 3  # the longest is `usd/1m tokens`
# Words at the end of a name that are units but may be the thing that is counted, or a statistic.
_NO_ENDING = frozenset(
    {"count", "tokens", "token", "tok", "requests", "request", "req", "samples", "query", "queries", "min"}
)


@dataclass(frozen=True)
class Unit:
    """A unit of a dimension such as `s` or `tok/s/gpu`; `factor` brings a number to it."""

    dimension: str
    factor: float

    def agrees(self, other: "Unit") -> bool:
        """Whether both may stand at one number: `$0.13` under `$/1M tokens`, `per sec` under `tok/s`."""
        dimensions = {self.dimension, other.dimension}
        return self == other or "/s" in dimensions or ("usd" in dimensions and all(map(_is_usd, dimensions)))


def _is_usd(dimension: str) -> bool:
    return dimension.startswith("usd")


@lru_cache(maxsize=4096)
def unit_of(text: str) -> Unit | None:
    """The unit in this text; None for other text."""
    plain = text.strip().lower()
    for pattern, instead in _PLAIN:
        plain = pattern.sub(instead, plain)
    found = UNITS.get(plain)
    return None if found is None else Unit(*found)


@lru_cache(maxsize=4096)
def split_name(text: str) -> tuple[str, Unit | None]:
    """The words of a name, and the unit that it ends with or has in brackets.

    Declared: lower case; spaces, underscores and hyphens are one space; a colon at the end and a unit are left out.
    """
    unit: Unit | None = None

    def without_unit(found: re.Match[str]) -> str:
        nonlocal unit
        is_least = found[1].strip() == "min" and len(_BRACKETS.findall(plain_name)) > 1  # `TTFT(min)(s)`
        stated = None if is_least else unit_of(found[1])
        unit = stated if stated and unit is None else unit
        return " " if stated else f" {found[1]} "

    plain_name = text.strip().rstrip(":").lower()
    plain = _BRACKETS.sub(without_unit, plain_name)
    words = _SLASH.sub("/", _PER_SECOND.sub("/", _GAPS.sub(" ", plain))).split()
    if words and words[-1].endswith("/s") and unit is None and unit_of(words[-1]) is None:
        words[-1:] = [words[-1].removesuffix("/s"), "/s"]  # `throughput per s`
    ending = None if unit else _ending(words)
    if ending is not None:
        unit, words = ending
    return _MILLION.sub("million", " ".join(words)), unit


def split_unit(text: str) -> tuple[str, Unit | None]:
    """The words of a unit that belong to the name of its metric, and the unit: `output tokens/s`."""
    whole = unit_of(text)
    return ("", whole) if whole else split_name(text)


def _ending(words: list[str]) -> tuple[Unit, list[str]] | None:
    """The unit of the last words and the words before it, the longest unit first."""
    if words[-2:] in (["tok", "s"], ["toks", "s"], ["tokens", "s"]):  # `output_tok_s`
        return Unit("tok/s", 1.0), words[:-2]
    for count in range(min(_WORDS_OF_A_UNIT, len(words)), 0, -1):
        if words[-count:] == ["token", "s"]:
            continue  # `latency per token s` is in seconds
        unit = unit_of(" ".join(words[-count:]))
        if unit is not None and not (count == 1 and words[-1] in _NO_ENDING):
            return unit, words[:-count]
    return None
