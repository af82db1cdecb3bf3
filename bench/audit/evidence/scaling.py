"""Evidence from claims that differ in one thing: the concurrency, the number of GPUs, or the precision."""

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from itertools import pairwise

from bench import evidence_columns as ev
from bench.audit.claim import Claim
from bench.audit.evidence.comparable import ComparableGroup, by_level, throughput
from bench.audit.evidence.evidence import EvidenceByColumn, Observed
from bench.audit.evidence.rounding import digits
from bench.catalog.precisions import WEIGHT_BYTES

GROWTH_MIN = 0.01
DIGITS_MIN = 4  # two measurements of throughput per GPU do not agree in this many digits by chance
LEVELS_APART = 1.2  # two concurrencies are compared only if the higher is at least this many times the lower
_PRECISION_WORDS = re.compile(
    r"[-_ ](?:bf16|fp16|fp8|int8|int4|mxfp4|nvfp4|fp4|awq|gptq|kv|dynamic|w\d+a\d+)\b", re.IGNORECASE
)


def scaling_gains(claims: Sequence[Claim]) -> list[EvidenceByColumn]:
    """Return the evidence of each claim, in their order; empty for a claim without another to compare with."""
    found: list[EvidenceByColumn] = [{} for _ in claims]
    for of_levels in ComparableGroup().groups(claims, is_closed):
        _levels(claims, by_level(claims, of_levels, lambda claim: claim.asked.concurrency or 0), found)
    for of_tp in ComparableGroup(frozenset({"tp_size", "gpu_count"})).groups(claims, _is_one_copy):
        for same in _same_load(claims, of_tp):
            _tp_gain(claims, by_level(claims, same, lambda claim: claim.asked.tp_size or 0), found)
    for of_precision in ComparableGroup(frozenset({"precision", "kv_precision", "model"})).groups(
        claims, _has_precision
    ):
        for same in _same_load(claims, of_precision):
            _precision_gain(claims, by_level(claims, same, _width), found)
    return found


def is_closed(claim: Claim) -> bool:
    """Whether the claim is a measured closed-loop result with a throughput and a named model."""
    asked = claim.asked
    has_load = bool(asked.concurrency) and not asked.is_open_loop and asked.request_rate_per_s is None
    return has_load and claim.outcome == "measured" and asked.model is not None and throughput(claim) is not None


def _is_one_copy(claim: Claim) -> bool:
    asked = claim.asked
    is_whole = asked.tp_size is not None and asked.gpu_count in (None, asked.tp_size)
    return is_whole and asked.gpu is not None and _is_comparable(claim)


def _has_precision(claim: Claim) -> bool:
    return claim.asked.precision in WEIGHT_BYTES and claim.asked.gpu is not None and _is_comparable(claim)


def _is_comparable(claim: Claim) -> bool:
    return claim.outcome == "measured" and claim.asked.model is not None and bool(throughput(claim))


def _same_load(claims: Sequence[Claim], group: Iterable[int]) -> Iterable[list[int]]:
    """Yield the claims of a group that have the same load and the same model, whatever its precision."""
    found: dict[Hashable, list[int]] = defaultdict(list)
    for at in group:
        asked = claims[at].asked
        model = _PRECISION_WORDS.sub("", (asked.model or "").rpartition("/")[2]).lower()
        found[asked.concurrency, asked.batch, asked.request_count, model].append(at)
    return [same for same in found.values() if len(same) > 1]


def _levels(claims: Sequence[Claim], levels: list[tuple[float, int]], found: list[EvidenceByColumn]) -> None:
    """Compare each concurrency with the next higher one, by throughput and by latency."""
    apart = _apart(levels)
    _growth(claims, apart, found)
    if claims[levels[0][1]].asked.gpu is None:
        return  # two unnamed GPUs cannot be compared further
    _over_linear(claims, apart, found)
    _dips(claims, apart, found)
    for (_, lower), (_, higher) in pairwise(apart):
        slow, fast = claims[lower].latency("tpot", "mean"), claims[higher].latency("tpot", "mean")
        if slow and fast:
            note = f"{1e3 * slow:.4g} ms per token at {claims[lower].asked.concurrency}, {1e3 * fast:.4g} here"
            found[higher][ev.TPOT_DROP] = Observed(1 - fast / slow, note)


def _apart(levels: list[tuple[float, int]]) -> list[tuple[float, int]]:
    kept = levels[:1]
    for level in levels[1:]:
        if level[0] >= LEVELS_APART * kept[-1][0]:
            kept.append(level)
    return kept


def _growth(claims: Sequence[Claim], levels: list[tuple[float, int]], found: list[EvidenceByColumn]) -> None:
    """Add how much throughput times latency, the requests in flight, changes from each level to the next.

    Once two levels are equal, the load is capped: all higher levels get the smallest change found so far.
    """
    least: Observed | None = None
    for (below, lower), (_, higher) in pairwise(levels):
        one, other = _in_flight(claims[lower]), _in_flight(claims[higher])
        if one is None or other is None:
            continue
        growth = abs(other - one) / max(one, other)
        note = f"throughput times latency is {other:.5g} here and {one:.5g} at {below:.0f}"
        if least is None or growth < least.value:
            least = Observed(growth, note)
        capped = least.value < GROWTH_MIN
        found[higher][ev.LOAD_GROWTH] = least if capped else Observed(growth, note)


def _in_flight(claim: Claim) -> float | None:
    """Return throughput times p99 latency, or times mean latency: proportional to the requests in flight."""
    rate, latency = throughput(claim), claim.latency("e2el", "p99") or claim.latency("e2el", "mean")
    return None if rate is None or latency is None else rate * latency


def _over_linear(claims: Sequence[Claim], levels: list[tuple[float, int]], found: list[EvidenceByColumn]) -> None:
    """Add the throughput per stream at each level, as a multiple of the throughput of a single stream."""
    lowest, first = levels[0]
    alone = throughput(claims[first])
    if lowest != 1 or not alone:
        return
    for level, at in levels[1:]:
        rate = throughput(claims[at]) or 0.0
        note = f"{rate:.5g} tok/s at {level:.0f}, {alone:.5g} at 1"
        found[at][ev.OVER_LINEAR] = Observed(rate / alone / level, note)


def _dips(claims: Sequence[Claim], levels: list[tuple[float, int]], found: list[EvidenceByColumn]) -> None:
    """Add by which share a level is below a lower one, if a higher one exceeds both: saturation does not dip."""
    rates = [throughput(claims[at]) or 0.0 for _, at in levels]
    highest_after = _running_max(reversed(rates))[::-1]
    highest_before = _running_max(rates)
    for place in range(1, len(levels) - 1):
        before, after = highest_before[place - 1], highest_after[place + 1]
        drop = 1 - rates[place] / before if before and after > before else 0.0
        note = f"{rates[place]:.5g} tok/s, but {before:.5g} with fewer streams and {after:.5g} with more"
        found[levels[place][1]][ev.THROUGHPUT_DIP] = Observed(max(0.0, drop), note)


def _running_max(values: Iterable[float]) -> list[float]:
    found: list[float] = []
    for value in values:
        found.append(max(value, found[-1]) if found else value)
    return found


def _tp_gain(claims: Sequence[Claim], levels: list[tuple[float, int]], found: list[EvidenceByColumn]) -> None:
    """Add the throughput per GPU, as a multiple of the throughput per GPU on fewer GPUs."""
    for (fewer, lower), (more, higher) in pairwise(levels):
        one, other = throughput(claims[lower]), throughput(claims[higher])
        if one and other:
            note = f"{other:.5g} tok/s at TP {more:.0f}, {one:.5g} at TP {fewer:.0f}"
            found[higher][ev.TP_GAIN] = Observed(other / one / (more / fewer), note)


def _width(claim: Claim) -> float:
    return -WEIGHT_BYTES[claim.asked.precision or ""]


def _precision_gain(claims: Sequence[Claim], levels: list[tuple[float, int]], found: list[EvidenceByColumn]) -> None:
    """Add the throughput relative to the next wider precision, divided by the ratio of their bits."""
    for (wide, lower), (narrow, higher) in pairwise(levels):
        one, other = throughput(claims[lower]), throughput(claims[higher])
        if one and other:
            first, second = claims[lower].asked.precision, claims[higher].asked.precision
            note = f"{other:.5g} tok/s in {second}, {one:.5g} in {first}"
            found[higher][ev.PRECISION_GAIN] = Observed(other / one / (wide / narrow), note)


def scaled_instances(claims: Sequence[Claim]) -> list[EvidenceByColumn]:
    """Return evidence for each claim with a whole multiple of the throughput on fewer GPUs; empty for the others."""
    found: list[EvidenceByColumn] = [{} for _ in claims]
    for group in ComparableGroup(frozenset({"gpu_count", "dp_size"})).groups(claims, _is_whole):
        for same in _same_by_gpu(claims, group):
            fewest = min(same, key=lambda at: claims[at].asked.gpu_count or 1)
            for at in same:
                _note(claims[fewest], claims[at], found[at])
    return found


def _is_whole(claim: Claim) -> bool:
    asked = claim.asked
    is_named = asked.model is not None and asked.gpu is not None and bool(asked.gpu_count)
    return is_named and claim.outcome == "measured" and digits(throughput(claim) or 0.0) >= DIGITS_MIN


def _same_by_gpu(claims: Sequence[Claim], group: Iterable[int]) -> Iterable[list[int]]:
    """Yield the claims of a group that have the same throughput per GPU."""
    found: dict[str, list[int]] = defaultdict(list)
    for at in group:
        of_gpu = (throughput(claims[at]) or 0.0) / (claims[at].asked.gpu_count or 1)
        found[f"{of_gpu:.{DIGITS_MIN + 1}g}"].append(at)
    return (same for same in found.values() if len(same) > 1)


def _note(one: Claim, other: Claim, found: EvidenceByColumn) -> None:
    few, many = one.asked.gpu_count or 1, other.asked.gpu_count or 1
    if many > few and many % few == 0:
        rates = f"{throughput(other):.6g} tok/s on {many} GPUs, {throughput(one):.6g} on {few}"
        found[ev.SCALED_INSTANCES] = Observed(many / few, f"{rates}: {one.label or one.lineage.place}")
