"""Two sides of a comparison: which leases each has, which series of both belong together, and what is refused."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import groupby

from bench.trends.difference import (
    Difference,
    Noise,
    Repeats,
    Sample,
    Verdict,
    difference_of,
    neighbour_noise,
    verdict_of,
)
from bench.trends.night_judge import false_discoveries_left_out, min_effect_of
from bench.trends.series import STACK_FIELDS, Point, SeriesKey

Facts = Mapping[str, str]
# What makes a series. Of the terms that may be compared, a side that names one is paired without it.
IDENTITY = ("source", "model", "precision", "gpu", "parallelism", "scenario", "engine", "client")
COMPARED = frozenset({"gpu", "parallelism", "engine", "variant", "machine"})
_OF_MACHINE = frozenset({"gpu", "parallelism"})  # another machine has other ones
# What the plan of a run says of its series; a side may name the engine, and has a series of another one then.
_PLANNED = ("model", "precision", "engine")
_TAGS = ("variant", "machine")  # the name of a scenario ends with theirs
TAG = "@"  # before each part of a scenario's name behind the first, such as those of its machine and its variant
# A number is compared only where these are equal; the others of the stack are listed beside the pair.
REQUIRED = ("workload", "method_version", "client", "client_version", "arrivals", "repeats", "model_revision")
ORDER: tuple[Verdict, ...] = ("loss", "gain", "changed", "inconclusive", "within one lease", "equivalent")


@dataclass(frozen=True)
class Lease:
    """The value of a metric on one lease: who it is, and what is known of it (`night`, `suite`, `gpu` and others)."""

    name: str
    key: SeriesKey
    point: Point
    repeats: Repeats
    facts: Facts
    is_lower_better: bool | None = None


@dataclass(frozen=True)
class Side:
    """One side: its text as given, and a pattern for each fact that it names."""

    text: str
    patterns: Facts

    def has(self, facts: Facts) -> bool:
        """Whether every pattern matches."""
        return all(
            name in facts and any(fnmatchcase(one, pattern) for one in facts[name].split("\n"))
            for name, pattern in self.patterns.items()
        )


@dataclass(frozen=True)
class Pair:
    """A metric of one series on both sides; `differs` has what else is not equal."""

    series: str
    metric: str
    one: Sequence[Lease]
    other: Sequence[Lease]
    difference: Difference
    is_lower_better: bool | None
    differs: Mapping[str, tuple[str, str]]
    verdict: Verdict = "inconclusive"


@dataclass(frozen=True)
class Refusal:
    """A series that is not compared, why, and of how many metrics; `missing_on`: the side, A or B, that lacks it.

    `planned` is what a run of that side would have to have, of a scenario of this name, to be one of the series.
    """

    series: str
    reason: str
    metrics: int
    missing_on: str | None = None
    scenario: str = ""
    planned: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Compared:
    """The pairs, losses first, and what was refused."""

    pairs: tuple[Pair, ...]
    refused: tuple[Refusal, ...]

    @property
    def has_loss(self) -> bool:
        """Whether a loss is confirmed."""
        return any(pair.verdict == "loss" for pair in self.pairs)


def compare_sides(leases: Iterable[Lease], one: Side, other: Side) -> Compared:
    """Pair the series of both sides, and judge all pairs at once; at most 5 % of what stands is there by chance."""
    paired_by = _paired_by(one, other)
    tags = [side.patterns[name] for side in (one, other) for name in _TAGS if name in side.patterns]
    found: dict[tuple[str, str], tuple[list[Lease], list[Lease]]] = defaultdict(lambda: ([], []))
    series: dict[SeriesKey, list[Lease]] = defaultdict(list)
    for lease in leases:
        series[lease.key].append(lease)
        for side, place in ((one, 0), (other, 1)):
            if side.has(lease.facts):
                found[_name(lease, paired_by, tags), lease.key.metric][place].append(lease)
    named = {*one.patterns, *other.patterns}
    pairs, refused = list[Pair](), list[Refusal]()
    for (name, metric), (left, right) in found.items():
        refusal = _refusal(name, left, right, named)
        if refusal is not None:
            refused.append(refusal)
            continue
        pairs.append(_pair(name, metric, left, right, series))
    counts = Counter(refused)
    ordered = sorted(counts, key=lambda one: (one.series, one.reason))
    return Compared(judged(pairs), tuple(replace(one, metrics=counts[one]) for one in ordered))


def judged(pairs: Sequence[Pair]) -> tuple[Pair, ...]:
    """The pairs with their verdicts, in the order in which they are read."""
    tested = [pair for pair in pairs if pair.difference.p is not None]
    standing = false_discoveries_left_out([pair.difference.p or 0.0 for pair in tested]) if tested else []
    stands = {id(pair) for pair, is_standing in zip(tested, standing, strict=True) if is_standing}
    said = [Pair(**(vars(pair) | {"verdict": _verdict(pair, stands=id(pair) in stands)})) for pair in pairs]
    return tuple(sorted(said, key=_place))


def noise_of(leases: Sequence[Lease], without: Sequence[Lease]) -> Noise:
    """The noise of a series' leases but those, from neighbours between which nothing that explains a value changed."""
    names = {lease.name for lease in without}
    rest = [lease for lease in leases if lease.name not in names and lease.point.is_valid]
    ordered = sorted(rest, key=lambda lease: lease.point.at)
    return neighbour_noise([[lease.point.value for lease in run] for _, run in groupby(ordered, key=_setup)])


def _setup(lease: Lease) -> tuple[str, ...]:
    return tuple(lease.point.stack.get(name, "") for name in STACK_FIELDS if name != "host")


def _paired_by(one: Side, other: Side) -> tuple[str, ...]:
    named = COMPARED & {*one.patterns, *other.patterns}
    named |= _OF_MACHINE if "machine" in named else frozenset()
    return tuple(name for name in IDENTITY if name not in named and name != "scenario")


def _name(lease: Lease, paired_by: Sequence[str], tags: Sequence[str]) -> str:
    """What a lease is paired by; its scenario, without the tags that these patterns of the sides name, is last."""
    first, *rest = lease.facts["scenario"].split(TAG)
    kept = [tag for tag in rest if not any(fnmatchcase(tag, pattern) for pattern in tags)]
    return "/".join((*(lease.facts[name] for name in paired_by if name in lease.facts), TAG.join((first, *kept))))


def _refusal(series: str, left: Sequence[Lease], right: Sequence[Lease], named: set[str]) -> Refusal | None:
    """Why a metric of a series is not compared; it stands for one metric."""
    if not left or not right:
        has, lacks = ("B", "A") if right else ("A", "B")
        facts = (left or right)[0].facts  # the same on all of them
        planned = tuple((name, facts[name]) for name in _PLANNED if name in facts and name not in COMPARED & named)
        return Refusal(series, f"only {has} has it", 1, lacks, known(left or right, "scenario"), planned)
    if {lease.name for lease in left} & {lease.name for lease in right}:
        return Refusal(series, "both sides have the same lease: name sides that do not overlap", 1)
    reasons = (_why_unlike(name, left, right) for name in REQUIRED if name not in named)
    return next((Refusal(series, reason, 1) for reason in reasons if reason is not None), None)


def _why_unlike(name: str, left: Sequence[Lease], right: Sequence[Lease]) -> str | None:
    """What is not one and the same on all leases of both sides; None where it is."""
    one, other = ({lease.facts.get(name, "unknown") for lease in side} for side in (left, right))
    if len(one | other) == 1:
        return None
    if one != other:
        return f"{name} differs: {', '.join(sorted(one))} and {', '.join(sorted(other))}"
    return f"{name} differs within both sides ({', '.join(sorted(one))}): add the same {name}=... to both"


def known(leases: Sequence[Lease], name: str) -> str:
    """What is known of these leases under a name, each once; empty: nothing."""
    return ", ".join(sorted({lease.facts[name] for lease in leases if name in lease.facts}))


def _pair(
    name: str, metric: str, left: Sequence[Lease], right: Sequence[Lease], series: Mapping[SeriesKey, Sequence[Lease]]
) -> Pair:
    keys = {lease.key for lease in (*left, *right)}
    both = [*left, *right]
    one, other = (
        sample_of(side, [lease for key in {one.key for one in side} for lease in series[key]], both)
        for side in (left, right)
    )
    fields = [*STACK_FIELDS, "gpu", "parallelism", "engine"]
    differs = {
        field: (known(left, field), known(right, field))
        for field in fields
        if known(left, field) != known(right, field)
    }
    found = difference_of(one, other, is_same_series=len(keys) == 1)
    return Pair(name, metric, left, right, found, left[0].is_lower_better, differs)


def sample_of(side: Sequence[Lease], series: Sequence[Lease], without: Sequence[Lease]) -> Sample:
    """A side's leases with what the other leases of their series say of the noise."""
    values = [lease.point.value for lease in side]
    return Sample(values, [lease.repeats for lease in side], noise_of(series, without))


def _verdict(pair: Pair, *, stands: bool) -> Verdict:
    least = min_effect_of(pair.metric)
    return verdict_of(pair.difference, least, is_lower_better=pair.is_lower_better, stands=stands)


def _place(pair: Pair) -> tuple[int, float, str, str]:
    size = abs(pair.difference.shift) / min_effect_of(pair.metric)
    return ORDER.index(pair.verdict), -size, pair.series, pair.metric
