"""A small grammar of sentences that compare: `up to 2x higher throughput than H100 at 128 users`, `TTFT is 13 % lower`.

A sentence is read only if it names one ratio, one metric and two configurations; any other that has a number and a
speed is named as unread.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from warehouse.importers.claims_table.facets import facets_of

_TIMES = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)\s?(?:x|×|times)(?![\w\d])", re.IGNORECASE)  # noqa: RUF001 - as printed
_PERCENT = re.compile(r"(?<![\w.])([+\u2212-]?)\s?(\d+(?:\.\d+)?)\s?%")
_SPEED = re.compile(
    r"throughput|tok(?:en)?s?\s?(?:/|per )\s?s|\bttft\b|\btpot\b|\bitl\b|time to first token|per output token"
    r"|latenc|faster|slower|speed-?up",
    re.IGNORECASE,
)
_METRICS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern, re.IGNORECASE))
    for name, pattern in (
        ("ttft", r"\bttft\b|time[ -]to[ -]first[ -]token"),
        ("tpot", r"\btpot\b|per output token"),
        ("itl", r"\bitl\b|inter-?token latency"),
        ("e2el", r"end-to-end latency|request latency"),
        ("rate", r"throughput|tok(?:en)?s?\s?(?:/|per )\s?s"),
    )
)
_UP = re.compile(
    r"\b(?:higher|faster|more|better|greater|improve\w*|increas\w*|gain\w*|speed-?up|outperform\w*)\b", re.IGNORECASE
)
_DOWN = re.compile(r"\b(?:lower|slower|less|fewer|shorter|reduc\w*|decreas\w*|drop\w*|cuts?)\b", re.IGNORECASE)
_THAN = re.compile(r"\b(?:than|vs\.?|versus|over|compared (?:to|with)|relative to|against)\b", re.IGNORECASE)
_MOST = re.compile(r"\b(?:up to|as much as|at most|max(?:imum)? of)\s*$", re.IGNORECASE)
_VAGUE = re.compile(
    r"\b(?:expected|estimate\w*|theoretical|could|should|may|might|would|projected|on average|geomean)\b", re.IGNORECASE
)


_SIDES = 2  # what is compared, and with what
_LOADS = frozenset({"concurrency", "batch", "isl", "osl"})


@dataclass(frozen=True)
class Compared:
    """What a sentence says: its first configuration has `times` the second's number, to within `half`.

    `stated` are the load and lengths that it names, by column of a table.
    """

    metric: str  # rate, ttft, tpot, itl, e2el
    first: str
    second: str
    times: float
    half: float
    is_most: bool
    stated: dict[str, str]
    printed: str


def is_about_speed(sentence: str) -> bool:
    """Whether it has a ratio or percentage, and a word of speed."""
    return bool(_SPEED.search(sentence)) and bool(_TIMES.search(sentence) or _PERCENT.search(sentence))


def compared(sentence: str) -> Compared | str:
    """What the sentence compares, or why it is not surely read."""
    ratios = [*_TIMES.finditer(sentence), *_PERCENT.finditer(sentence)]
    metrics = [name for name, pattern in _METRICS if pattern.search(sentence)]
    sides = _THAN.split(sentence, maxsplit=2)
    up, down = bool(_UP.search(sides[0])), bool(_DOWN.search(sides[0]))
    doubts = {
        "it has several ratios": len(ratios) > 1,
        "it names no metric": not metrics,
        "it names several metrics": len(metrics) > 1,
        "it does not say what is compared with what": len(sides) != _SIDES,
        "it states no measurement": bool(_VAGUE.search(sentence)),
        "it does not say which is higher": up == down,
        "a latency that is better is not surely a ratio": metrics != ["rate"] and up,
    }
    doubt = next((why for why, holds in doubts.items() if holds), None)
    if doubt is not None:
        return doubt
    times, half = _ratio(ratios[0], is_less=down)
    return Compared(
        metric=metrics[0],
        first=sides[0],
        second=sides[1],
        times=times,
        half=half,
        is_most=bool(_MOST.search(sentence[: ratios[0].start()])),
        stated={name: value for name, value in facets_of(sentence)[0].items() if name in _LOADS},
        printed=ratios[0][0].strip(),
    )


def _ratio(found: re.Match[str], *, is_less: bool) -> tuple[float, float]:
    """The first's number over the second's, and half a unit of the last printed digit of it."""
    text = found[found.lastindex or 1]
    half = 0.5 * 10.0 ** -len(text.partition(".")[2])
    number = float(text)
    of: Callable[[float], float]
    if found.re is _TIMES:
        of = (lambda value: 1 / value) if is_less else (lambda value: value)
    else:
        of = lambda value: 1 + (-value if is_less else value) / 100  # noqa: E731 - as short as the other
    if number - half <= 0:
        return of(max(number, half)), half
    return of(number), abs(of(number + half) - of(number - half)) / 2
