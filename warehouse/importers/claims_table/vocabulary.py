"""Find what the name of a metric or column means: exactly, by catalog/spellings.csv, else by the words in it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Literal

from catalog.read import read_spellings
from warehouse.importers.claims_table.likeness import Spellings
from warehouse.importers.claims_table.words import understood
from warehouse.importers.parsing.printed_units import Unit, split_name, split_unit

LATENCIES = ("ttft", "tpot", "itl", "e2el")
STATISTICS = {
    **dict.fromkeys(("mean", "avg", "average"), "mean"),
    **dict.fromkeys(("min", "minimum"), "min"),
    **dict.fromkeys(("max", "maximum"), "max"),
    **dict.fromkeys(("std", "stddev", "stdev"), "std"),
    "median": "median",
}
_PERCENTILE = re.compile(r"p(\d{1,2}(?:\.\d+)?|999)|(\d{1,2}(?:\.\d+)?)(?:th|st|nd|rd)? percentile")
# A name that is only a unit states no more than that.
OF_UNIT = {
    "tok/s": "unstated_throughput_tok_per_s",
    "tok/s/user": "per_user_tok_per_s",
    "tok/s/gpu": "output_per_gpu_tok_per_s|total_per_gpu_tok_per_s|train_tok_per_s_per_gpu",
    "req/s": "request_throughput_per_s",
    "tflop/s/gpu": "train_tflops_per_gpu",
    "usd/mtok": "usd_per_mtok_unstated",
    "usd/h": "usd_per_hour",
}
# vLLM prints `Maximum concurrency for 8,192 tokens per request`.
_FOR_CONTEXT = re.compile(r"\s+for\s+(\d[\d,]*)\s+tokens(?:\s+per\s+request|/request)?", re.IGNORECASE)
_POINT = re.compile(r"(?<=[a-z])\.(?=[a-z])")  # `ttft.p99`, as our own names are written
_CUTOFF = 0.5  # of difflib, whose 1 is equal; below it no name is near


@dataclass(frozen=True)
class Meaning:
    """Our names that a name may mean, and the unit that it states."""

    candidates: tuple[str, ...]
    unit: Unit | None


@dataclass(frozen=True)
class _Table:
    """Meanings by words, then by the dimension of the unit that the spelling states (`""`: none)."""

    means: Mapping[str, Mapping[str, tuple[str, ...]]]
    spellings: Mapping[str, str]  # by words, as first printed

    def find(self, words: str, unit: Unit | None) -> tuple[str, ...] | None:
        """The meaning of these words with this unit; the unit decides only where the same words mean two things."""
        of_words = self.means.get(words, {})
        dimension = unit.dimension if unit else ""
        found = of_words.get(dimension) or of_words.get(dimension.removesuffix("/gpu"))
        return found if found or len(set(of_words.values())) != 1 else next(iter(of_words.values()))


@lru_cache(maxsize=4096)
def metric_of(name: str, unit: str = "") -> Meaning | None:
    """What this metric means; `unit` is that of its row, whose other words belong to the name (`output tokens/s`)."""
    words, stated = split_name(_POINT.sub(" ", _FOR_CONTEXT.sub("", name)))
    beside, of_row = split_unit(unit)
    for key in dict.fromkeys((" ".join(filter(None, (beside, words))), words)):
        found = _found(key, stated or of_row)
        if found is not None:
            return Meaning(found, stated)
    return None


def context_in(name: str) -> int | None:
    """The tokens of a request that a metric's name states: `Maximum concurrency for 8,192 tokens per request`."""
    found = _FOR_CONTEXT.search(name)
    return int(found[1].replace(",", "")) if found else None


def _found(words: str, unit: Unit | None) -> tuple[str, ...] | None:
    if not words:
        means = OF_UNIT.get(unit.dimension) if unit else None
        return tuple(means.split("|")) if means else None
    table = _table("metric")
    exact = table.find(words, unit) or _statistic_of(words, unit, table)
    # `Decode tok/s` may be of all users or of one; `Decode tok/s/GPU` is of neither.
    is_told_by_unit = unit is not None and unit.dimension.endswith(("/gpu", "/user")) and len(exact or ()) > 1
    by_words = understood(words, unit) if exact is None or is_told_by_unit else None
    return by_words.candidates if by_words and by_words.score == 1 else exact


@lru_cache(maxsize=1024)
def column_of(name: str) -> tuple[str, ...]:
    """The columns of a claims table that this header may mean; empty if it means none."""
    return _table("column").find(*split_name(name)) or ()


@lru_cache(maxsize=4096)
def nearest(name: str, *kinds: Literal["metric", "column"]) -> str | None:
    """The spelling of these kinds that is nearest to this name, by its words or its letters; None if none is near."""
    by_words = understood(*split_name(name)) if "metric" in kinds else None
    if by_words is not None and by_words.score >= _CUTOFF:
        return by_words.candidates[0]
    words = _words_of(kinds).nearest(split_name(name)[0], _CUTOFF)
    spelt = (_table(kind).spellings.get(words) for kind in reversed(kinds)) if words else ()
    return next(filter(None, spelt), None)


@cache
def _words_of(kinds: tuple[str, ...]) -> Spellings:
    return Spellings(words for kind in kinds for words in _table(kind).spellings)


def _statistic_of(key: str, unit: Unit | None, table: _Table) -> tuple[str, ...] | None:
    """`p95 ttft` and `ttft p95` are a statistic of `ttft`."""
    first, _, after = key.partition(" ")
    before, _, last = key.rpartition(" ")
    whole = _PERCENTILE.match(key)
    pairs = [(first, after), (last, before)]
    if whole is not None:
        pairs.append((whole[0], key[whole.end() :].strip()))
    for word, rest in pairs:
        statistic, base = _statistic(word), table.find(rest, unit)
        if statistic and base and set(base) <= set(LATENCIES):
            return tuple(f"{metric}.{statistic}" for metric in base)
    return None


def _statistic(word: str) -> str | None:
    found = _PERCENTILE.fullmatch(word)
    if found is None:
        return STATISTICS.get(word)
    share = f"{float(found[1] or found[2]):g}"
    return "median" if share == "50" else f"p{share.replace('.', '')}"


@cache
def _table(kind: str) -> _Table:
    means: dict[str, dict[str, tuple[str, ...]]] = {}
    spellings: dict[str, str] = {}
    for row in read_spellings():
        words, unit = split_name(row.spelling)
        if row.kind == kind and words:
            means.setdefault(words, {}).setdefault(unit.dimension if unit else "", row.candidates)
            spellings.setdefault(words, row.spelling)
    return _Table(means, spellings)
