"""Understand a header that no spelling lists by its words: what is measured, of which tokens, per what.

A header is understood only if every word of it is known (catalog/header_words.csv) and all of them together name one
number of ours. Otherwise the share of known words is its score, and what the known words name is the nearest name.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache

from catalog.read import read_header_words
from warehouse.importers.parsing.printed_units import Unit

_PER = re.compile(r"\s*/\s*(?=(?:gpu|device|card|user|request|query|stream)s?\b)")
_PERCENTILE = re.compile(r"p(\d{1,2}(?:\.\d+)?)|(\d{1,2}(?:\.\d+)?)(?:th|st|nd|rd)?(?: percentile)?%?")
_WORDS_MAX = 5  # of one entry of the vocabulary
_GLUED_MIN = 4  # letters of a word that is known where it begins a longer one
_LATENCIES = frozenset({"ttft", "tpot", "itl", "e2el"})
# A unit that says what is measured where no word does.
_BY_UNIT = {
    "tok/s": "throughput",
    "tok/s/gpu": "throughput",
    "tok/s/user": "throughput",
    "req/s": "requests",
    "usd/mtok": "cost",
}
_THROUGHPUTS: Mapping[tuple[str, str], str] = {
    ("output", ""): "output_throughput_tok_per_s",
    ("input", ""): "input_throughput_tok_per_s",
    ("total", ""): "total_throughput_tok_per_s",
    ("", ""): "unstated_throughput_tok_per_s",
    ("output", "gpu"): "output_per_gpu_tok_per_s",
    ("total", "gpu"): "total_per_gpu_tok_per_s",
    ("", "gpu"): "output_per_gpu_tok_per_s|total_per_gpu_tok_per_s",
    ("output", "user"): "per_user_tok_per_s",
    ("", "user"): "per_user_tok_per_s",
}


@dataclass(frozen=True)
class Understood:
    """Our names for a header, and the share of its words that are known; 1.0: it is understood."""

    candidates: tuple[str, ...]
    score: float


@dataclass
class _Parts:
    quantity: set[str] = field(default_factory=set)
    tokens: set[str] = field(default_factory=set)
    per: set[str] = field(default_factory=set)
    statistic: set[str] = field(default_factory=set)
    known: int = 0
    words: int = 0


@lru_cache(maxsize=4096)
def understood(words: str, unit: Unit | None) -> Understood | None:
    """What these words of a header mean, in lower case and without their unit; None if they name no number of ours."""
    parts = _Parts()
    for kind, means, count in _matched(_PER.sub(" per ", words).split()):
        parts.words += count
        parts.known += count if kind else 0
        if kind in {"tokens", "per", "statistic"} and means:
            getattr(parts, kind).add(means)
        elif kind == "quantity":
            *which, quantity = means.split()
            parts.tokens.update(which)
            parts.quantity.add(quantity)
    names = _named(parts, unit)
    return Understood(names, parts.known / parts.words) if names and parts.words else None


def _matched(words: list[str]) -> Iterator[tuple[str, str, int]]:
    """Kind and meaning of the words, the longest entry first, and how many words it has; an unknown one has no kind."""
    table, at = _table(), 0
    while at < len(words):
        for count in range(min(_WORDS_MAX, len(words) - at), 0, -1):
            phrase = " ".join(words[at : at + count])
            found = table.get(phrase) or _percentile(phrase)
            if found:
                yield (*found, count)
                at += count
                break
        else:
            yield "", "", 1
            at += 1


def _percentile(phrase: str) -> tuple[str, str] | None:
    found = _PERCENTILE.fullmatch(phrase)
    if found is None or not (found[1] or phrase.endswith(("%", "percentile", "th"))):
        return None
    share = f"{float(found[1] or found[2]):g}"
    return "statistic", "median" if share == "50" else f"p{share.replace('.', '')}"


def _named(parts: _Parts, unit: Unit | None) -> tuple[str, ...]:
    """The names of ours; empty if the words contradict one another."""
    if not parts.quantity and (parts.tokens or parts.per) and unit and unit.dimension in _BY_UNIT:
        parts.quantity.add(_BY_UNIT[unit.dimension])
    if len(parts.quantity) != 1 or max(len(parts.tokens), len(parts.per), len(parts.statistic)) > 1:
        return ()
    (quantity,) = parts.quantity
    tokens, per, statistic = (next(iter(each), "") for each in (parts.tokens, parts.per, parts.statistic))
    if quantity in _LATENCIES:
        return _latency(quantity, statistic) if not tokens and per != "gpu" else ()
    if quantity == "throughput":
        per = per or {"tok/s/gpu": "gpu", "tok/s/user": "user"}.get(unit.dimension if unit else "", "")
    dimension = unit.dimension if unit else ""
    names = {
        "throughput": _THROUGHPUTS.get((tokens, per), ""),
        "requests": "request_throughput_per_s" if unit and not tokens and not per else "",
        "duration": "duration_s" if tokens in {"", "total"} and not per else "",
        "cost": f"usd_per_mtok_{tokens or 'unstated'}" if dimension == "usd/mtok" and not per else "",
    }[quantity]
    # No field holds the spread or a percentile of a rate.
    return tuple(names.split("|")) if names and statistic in {"", "mean"} else ()


def _latency(quantity: str, statistic: str) -> tuple[str, ...]:
    names = ("itl", "tpot") if quantity == "itl" else (quantity,)
    return tuple(f"{name}.{statistic}" if statistic else name for name in names)


@cache
def _table() -> Mapping[str, tuple[str, str]]:
    return {row.words: (row.kind, row.means or "") for row in read_header_words() if row.kind != "engine"}


def percentile_in(words: str) -> str | None:
    """The name of the statistic that these words are: `p99` of `99%`; None for other words."""
    found = _percentile(words)
    return found[1] if found else None


def names_speed(text: str) -> bool:
    """Whether a text has words for a latency or a rate, whatever else it says."""
    words = text.lower().replace("-", " ").replace("_", " ").split()
    return any(kind == "quantity" and _is_speed(means) for kind, means, _ in _matched(words)) or any(
        word.startswith(_glued()) for word in words
    )


def _is_speed(means: str) -> bool:
    return means.rsplit(maxsplit=1)[-1] in _LATENCIES | {"throughput", "requests"}


@cache
def _glued() -> tuple[str, ...]:
    """Words of speed with which a longer one may begin: `throughputvllm`."""
    known = _table().items()
    return tuple(
        words for words, (kind, means) in known if kind == "quantity" and len(words) >= _GLUED_MIN and _is_speed(means)
    )


def without_ignored(words: str) -> str:
    """The words without those that mean nothing in a header: `reference`."""
    table = _table()
    return " ".join(word for word in words.split() if table.get(word, ("",))[0] != "ignored")


def engine_in(text: str) -> str | None:
    """The name of an inference engine in a text as it is printed there: `Llama.cpp`; None for none, or several."""
    found = {each[0] for each in _engines().finditer(text)}
    return found.pop() if len(found) == 1 else None


@cache
def _engines() -> re.Pattern[str]:
    names = sorted((row.words for row in read_header_words() if row.kind == "engine"), key=len, reverse=True)
    return re.compile(rf"(?<![\w.-])(?:{'|'.join(map(re.escape, names))})(?![\w.-])", re.IGNORECASE)
