"""Which claims are of one configuration but for what is compared, so that they can be held against each other."""

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from operator import attrgetter

from bench.audit.claim import Claim, ClaimedConfig
from bench.audit.evidence.rates import mean_isl, mean_osl, output_tok_per_s, total_tok_per_s

# What a table says beside its columns of who measured and when, as it stands in `Claim.unread`.
_ORIGIN = ("source", "url_or_title", "system", "provider")
_TABLES = frozenset({"claims-table", "table"})  # formats whose rows may be of many machines
# Notes are free text, but `request_rate=16` in them is a setting; these are what came out, not what was set.
_SETTING = re.compile(r"([\w./-]+(?: [\w./-]+)*)\s*=\s*([^;,]*)")
_RESULTS = frozenset({"completed", "failed", "total_in", "total_out", "status", "phase", "n"})
# Fields that do not distinguish configurations, or that are compared.
_LOOSE = frozenset(
    {"concurrency", "batch", "request_count", "warmup_count", "usd_per_hour", "weights_gib", "weights_source"}
    | {"isl", "osl", "slo_quality", "has_fixed_lengths", "has_distinct_prompts"}
)


@dataclass(frozen=True)
class ComparableGroup:
    """Groups claims by every field of the requested configuration except these and the loose ones."""

    varied: frozenset[str] = frozenset()

    def groups(self, claims: Sequence[Claim], is_one: Callable[[Claim], bool]) -> Iterable[list[int]]:
        """Groups of two or more places in `claims`."""
        names = [each.name for each in fields(ClaimedConfig) if each.name not in _LOOSE | self.varied]
        asked = attrgetter(*names)
        grouped: dict[Hashable, list[int]] = defaultdict(list)
        for at, claim in enumerate(claims):
            if is_one(claim) and (machine := machine_of(claim)) is not None:
                grouped[machine, asked(claim.asked), *_rest(claim)].append(at)
        return [group for group in grouped.values() if len(group) > 1]


def machine_of(claim: Claim) -> str | None:
    """Equal for claims that can be of the same machine: the GPU, else the file whose parts are of one run.

    None where the GPU is unknown and the claim is a row of a table: each row may be of another machine.
    """
    if claim.asked.gpu is not None:
        return claim.asked.gpu
    lineage = claim.lineage
    return None if lineage.format in _TABLES and lineage.place else lineage.sha256


def _rest(claim: Claim) -> tuple[Hashable, ...]:
    lineage = claim.lineage
    origin = tuple(str(claim.unread.get(name, "")) for name in _ORIGIN) if claim.unread else ()
    settings = _settings(str(claim.unread.get("notes", "")))
    lengths = (_about(claim.asked.isl or mean_isl(claim)), _about(claim.asked.osl or mean_osl(claim)))
    # A column that is not read may be a setting; one of numbers may be a result as well, and splits repeats only.
    columns = frozenset(each for each in unread_columns(claim) if not each[1][:1].isdigit())
    tool = (lineage.format, lineage.tool, lineage.tool_version)
    return (*tool, claim.kind, claim.outcome, origin, settings, lengths, columns)


def unread_columns(claim: Claim) -> frozenset[tuple[str, str]]:
    """The columns of its row that are not read, with their cells: rows in which they differ may be of two settings."""
    return frozenset((each.name, each.value) for each in claim.not_read if each.what == "column")


@lru_cache(maxsize=4096)
def _settings(notes: str) -> frozenset[tuple[str, str]]:
    """The settings that notes state as `name=value`, whatever else they say."""
    return frozenset((name, value.strip()) for name, value in _SETTING.findall(notes) if name.lower() not in _RESULTS)


def _about(tokens: float | None) -> str:
    """To two digits: prompts of one length come out a little different each time."""
    return "" if tokens is None else f"{tokens:.2g}"


def by_level(claims: Sequence[Claim], group: Iterable[int], level: Callable[[Claim], float]) -> list[tuple[float, int]]:
    """One claim a level, in order of the levels: of several the one with the middle throughput."""
    found: dict[float, list[int]] = defaultdict(list)
    for at in group:
        found[level(claims[at])].append(at)
    return sorted((value, _middle(claims, several)) for value, several in found.items())


def _middle(claims: Sequence[Claim], several: list[int]) -> int:
    return sorted(several, key=lambda at: throughput(claims[at]) or 0.0)[len(several) // 2]


def throughput(claim: Claim) -> float | None:
    """What is compared: output tokens a second, else all tokens."""
    output = output_tok_per_s(claim)
    return total_tok_per_s(claim) if output is None else output


def numbers_of(claim: Claim) -> Mapping[str, float]:
    """Rates and latencies as stated, by name."""
    said = {
        name: value
        for name, value in vars(claim.said).items()
        if isinstance(value, float) and ("tok_per_s" in name or "throughput" in name or "tflops" in name)
    }
    for metric, statistics in claim.latency_s.items():
        said |= {f"{metric} {statistic}": value for statistic, value in statistics.items()}
    return said
