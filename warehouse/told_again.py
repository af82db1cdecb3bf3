"""Runs that several files of a folder describe: a sweep's summary and its runs, a report as JSON and as YAML.

A copy of a file is not such a pair: under another name it may claim to be another run, and a rule reports it.
"""

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from pathlib import PurePath

from bench.audit.claim import Claim
from bench.audit.evidence.comparable import numbers_of
from bench.audit.evidence.rounding import digits

DIGITS_MIN = 8  # of a number that no two runs have in common


def told_again(claims: Sequence[Claim], checked: Sequence[int]) -> Mapping[int, int]:
    """The places in `claims` that describe a run again, each with the place to use.

    That is the one with the most `checked` numbers, and of those the first.
    """
    runs: dict[Hashable, list[int]] = defaultdict(list)
    for at, claim in enumerate(claims):
        if claim.outcome == "measured" and any(digits(value) >= DIGITS_MIN for value in numbers_of(claim).values()):
            runs[_numbers(claim)].append(at)
    found: dict[int, int] = {}
    for several in runs.values():
        kept = max(several, key=lambda at: (checked[at], -at))
        again = [at for at in several if _is_elsewhere(claims[at], claims[kept])]
        found |= dict.fromkeys(again, kept)
    return found


def _numbers(claim: Claim) -> Hashable:
    latencies = (
        (metric, statistic, value)
        for metric, statistics in claim.latency_s.items()
        for statistic, value in statistics.items()
    )
    return claim.asked, claim.said, tuple(sorted(latencies))


def _is_elsewhere(claim: Claim, kept: Claim) -> bool:
    """Whether it is described in another format, not in a copy."""
    return claim.lineage.file != kept.lineage.file and _way(claim) != _way(kept)


def _way(claim: Claim) -> Hashable:
    name = claim.lineage.file.removesuffix(".gz")
    return claim.lineage.format, claim.lineage.place, PurePath(name).suffix
