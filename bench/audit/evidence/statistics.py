"""Whether the statistics of a latency go together, and whether enough requests and repeats stand behind them."""

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from math import ceil, log, sqrt
from statistics import geometric_mean

import numpy as np

from bench import evidence_columns as ev
from bench.added_repeats import half_width
from bench.audit.claim import Claim, Metric
from bench.audit.evidence.comparable import machine_of, unread_columns
from bench.audit.evidence.completeness import DURATION_S
from bench.audit.evidence.evidence import EvidenceByColumn, MissingInput, Observed
from bench.audit.evidence.lengths import chance_of_lengths
from bench.audit.evidence.rounding import half_unit
from bench.audit.evidence.successful import SuccessfulRequests
from bench.metrics import ratio
from bench.student import t_975

PER_SLOT = 10  # InferenceX and MAD send so many
HEADLINE = 99.0  # tools with fixed percentiles print higher ones for any count; they are not quoted
FIXED = ("guidellm", "inference-perf", "llm-d", "llmd", "aiperf")
WEIGHED = 1.1  # by how much a weighted mean may be beyond a plain one
STANDARD_ERRORS = 3.0
LENGTHS_VARY = 4 / 3  # of answers drawn evenly from 0 to twice their mean: 1 plus their relative variance
MAY_BE_CHANCE = 0.15  # the most that is held against repeats of which a file does not say how long they were
TAIL = 90.0  # from here on percentiles are published; 36 requests support it


def quantile(name: str) -> float | None:
    """99.9 of `p999`, 0.1 of `p01`, 50 of `median`; None for anything else."""
    if name == "median":
        return 50.0
    digits = name[1:]
    if not name.startswith("p") or not digits.isdigit():
        return None
    if digits.startswith("0"):
        return float(f"0.{digits[1:] or '0'}")
    return float(digits) if len(digits) <= 2 or digits == "100" else float(f"{digits[:2]}.{digits[2:]}")  # noqa: PLR2004 - p99


def order(claim: Claim) -> EvidenceByColumn:
    """How many statistics contradict each other: a percentile below a lower one, a mean that none can have."""
    wrong = [
        note
        for metric, stated in claim.latency_s.items()
        for note in (*_disorder(metric, dict(stated)), *_impossible_together(metric, dict(stated)))
    ]
    if not wrong and not any(len(stated) > 1 for stated in claim.latency_s.values()):
        return {ev.PERCENTILE_DISORDER: MissingInput("no latency has two statistics")}
    return {ev.PERCENTILE_DISORDER: Observed(float(len(wrong)), ", ".join(wrong))}


def _disorder(metric: Metric, stated: dict[str, float]) -> Iterator[str]:
    ranked = {"min": -1.0, "max": 101.0} | {name: q for name in stated if (q := quantile(name)) is not None}
    names = sorted((name for name in ranked if name in stated), key=lambda name: ranked[name])
    for lower, higher in pairwise(names):
        if _is_above(stated[lower], stated[higher]):
            yield f"{metric} {lower} {stated[lower]:.6g} s > {higher} {stated[higher]:.6g} s"
    if "mean" in stated and "min" in stated and _is_above(stated["min"], stated["mean"]):
        yield f"{metric} mean {stated['mean']:.6g} s is below the minimum {stated['min']:.6g} s"
    if "mean" in stated and "max" in stated and _is_above(stated["mean"], stated["max"]):
        yield f"{metric} mean {stated['mean']:.6g} s is above the maximum {stated['max']:.6g} s"
    if stated.get("std", 0.0) < 0:
        yield f"{metric} std {stated['std']:.6g} s is negative"


def _impossible_together(metric: Metric, stated: dict[str, float]) -> Iterator[str]:
    """What holds of any times: the mean is at least the share above a percentile times it, and Cantelli's inequality.

    A tool may weigh its mean by tokens, which moves it a little.
    """
    mean, std = stated.get("mean"), stated.get("std")
    yield from _too_wide(metric, stated)
    ranks = {name: q / 100 for name in stated if (q := quantile(name)) is not None and 0.0 < q < 100.0}  # noqa: PLR2004 - percent
    for name, q in ranks.items():
        value = stated[name]
        if mean is not None and (1 - q) * value > mean * WEIGHED:
            yield f"{metric} {name} {value:.6g} s needs a mean of {(1 - q) * value:.6g} s at least, {mean:.6g} s stated"
        elif mean is not None and std is not None and std > 0:
            above, below = sqrt(q / (1 - q)) * std, sqrt((1 - q) / q) * std
            if not mean - below * WEIGHED <= value <= mean + above * WEIGHED:
                apart = f"{abs(value - mean) / std:.3g} deviations of {std:.6g} s"
                yield f"{metric} {name} {value:.6g} s is {apart} from the mean {mean:.6g} s"


def _too_wide(metric: Metric, stated: dict[str, float]) -> Iterator[str]:
    """No deviation is above that of two values, the least and the largest, with this mean: Bhatia-Davis."""
    mean, std, low, high = (stated.get(name) for name in ("mean", "std", "min", "max"))
    if mean is None or std is None or low is None or high is None or not low <= mean <= high:
        return
    # Of a sample of two, the deviation is the square root of 2 times that of the population.
    most = sqrt(2 * (high - mean) * (mean - low))
    if std > most * WEIGHED:
        yield f"{metric} std {std:.6g} s is above {most:.6g} s, the most from {low:.6g} to {high:.6g} s"


def _is_above(one: float, other: float) -> bool:
    return one - other > half_unit(one) + half_unit(other)


def least_samples(q: float) -> int:
    """From so many on a percentile has a two-sided distribution-free 95 % interval; `q` is 50 to 100."""
    return ceil(log(0.025) / log(q / 100)) if q < 100 else 1  # noqa: PLR2004 - p100 is the largest, whatever the count


def tails(claim: Claim, answered: SuccessfulRequests) -> EvidenceByColumn:
    """How many percentiles are stated that so few requests do not support; nothing where none are."""
    is_fixed = any(name.startswith(FIXED) for name in (claim.lineage.format, (claim.lineage.tool or "").lower()))
    most = HEADLINE if is_fixed else 100.0
    stated = [
        (q, metric, name)
        for metric, values in claim.latency_s.items()
        for name in values
        if (q := quantile(name)) is not None and TAIL <= q <= most
    ]
    if not stated:
        return {}
    count = claim.said.completed
    if count is None and answered.is_good is not None:
        count = int(answered.is_good.sum())
    if count is None:
        return {ev.THIN_PERCENTILES: MissingInput("the number of completed requests is unknown")}
    thin = [
        f"{metric} {name} needs {least_samples(q)} requests" for q, metric, name in stated if count < least_samples(q)
    ]
    note = f"{count} requests; {', '.join(thin)}" if thin else ""
    return {ev.THIN_PERCENTILES: Observed(float(len(thin)), note, _withheld(claim, count))}


def _withheld(claim: Claim, count: int) -> tuple[str, ...]:
    """The columns of every percentile, headline or not, that so few requests do not support."""
    return tuple(
        f"{metric}_{name}_ms"
        for metric, values in claim.latency_s.items()
        for name in values
        if (q := quantile(name)) is not None and q >= TAIL and count < least_samples(q)
    )


def intervals(claim: Claim, _answered: SuccessfulRequests) -> EvidenceByColumn:
    """How many of the two guards an interval is stated without; nothing where none is."""
    if claim.said.interval_half_width_share is None:
        return {}
    said, asked = claim.said, claim.asked
    guards = {
        f"a window of {DURATION_S:g} s": ratio(said.duration_s, DURATION_S),
        f"{PER_SLOT} requests per slot": ratio(asked.request_count, (asked.concurrency or 0) * PER_SLOT),
    }
    if asked.concurrency is None:
        guards.popitem()
    if None in guards.values():
        return {
            ev.UNGUARDED_INTERVAL: MissingInput(
                f"unknown: {' and '.join(name for name, value in guards.items() if value is None)}"
            )
        }
    broken = [name for name, value in guards.items() if value is not None and value < 1]
    note = f"± {said.interval_half_width_share:.1%} without {' and '.join(broken)}" if broken else ""
    withheld = ("interval_half_width_share",) if broken else ()
    return {ev.UNGUARDED_INTERVAL: Observed(float(len(broken)), note, withheld)}


def quality(claim: Claim) -> EvidenceByColumn:
    """The score over the lowest with which a speed may be published; nothing where no such limit is known."""
    limit, score = claim.asked.slo_quality, claim.said.quality
    if limit is None:
        return {}
    value = ratio(score, limit)
    if value is None:
        return {ev.QUALITY_OVER_LIMIT: MissingInput("the score of the same server process is missing")}
    return {ev.QUALITY_OVER_LIMIT: Observed(value, f"{score:.6g}, at least {limit:.6g}")}


# What a published table says only in words; where it differs, so may the load.
TOLD_APART = ("url_or_title", "system", "provider", "notes")


def repeats(claims: Sequence[Claim]) -> list[EvidenceByColumn]:
    """How much the throughput of repeats varies: measured claims of one label, tool and configuration.

    A claim that names what it repeats is compared with those that name the same; of an unknown GPU with none.
    """
    together: dict[Hashable, list[int]] = defaultdict(list)
    for at, claim in enumerate(claims):
        # A rate of 0 or less is a finding of its own, and would make the others look unstable.
        if claim.outcome == "measured" and (_throughput(claim) or 0) > 0:
            if claim.repeat_of:
                together[claim.repeat_of].append(at)
            elif claim.label and _says_load(claim) and (machine := machine_of(claim)) is not None:
                together[machine, _described(claim)].append(at)
    found: list[EvidenceByColumn] = [{} for _ in claims]
    for members in together.values():
        group = [claims[at] for at in members]
        is_by_interval = group[0].half_width_max is not None
        column = ev.HALF_WIDTH_OVER_ALLOWED if is_by_interval else ev.REPEAT_VARIATION
        seen = _width_of_interval(group) if is_by_interval else _variation(group)
        seen = _with_core_speeds(seen, group)
        for at in members if seen is not None else ():
            found[at][column] = _beside(seen, claims[at])  # type: ignore[arg-type]
    return found


def _with_core_speeds(found: Observed | None, claims: Sequence[Claim]) -> Observed | None:
    """The same with how fast the cores were in these repeats, which may be why they differ."""
    speeds = sorted(claim.core_speed_share for claim in claims if claim.core_speed_share is not None)
    if found is None or not speeds or f"{speeds[0]:.0%}" == f"{speeds[-1]:.0%}":
        return found  # what did not change explains no difference
    said = f"the cores ran at {speeds[0]:.0%} to {speeds[-1]:.0%} of their best speed in these repeats"
    return replace(found, note=f"{found.note}; {said}")


def _beside(found: Observed, claim: Claim) -> Observed:
    return replace(found, note=f"{found.note}; during it {claim.beside}") if claim.beside else found


def _width_of_interval(claims: Sequence[Claim]) -> Observed | None:
    """How wide the interval of the mean of a night's repeats is, over what their suite asks; None of fewer than two.

    Of a closed loop it is that of throughput; of an open one of the median latency, since its arrivals set the rate.
    """
    is_open = claims[0].asked.is_open_loop
    found = [claim.latency("e2el", "median") if is_open else _throughput(claim) for claim in claims]
    values = [value for value in found if value is not None]
    width, asked = half_width(values), claims[0].half_width_max
    if width is None or asked is None:
        return None
    mean, unit = geometric_mean(values), "s of median E2EL" if is_open else "tok/s"
    note = f"{len(values)} repeats, {mean:.4g} {unit} ± {width:.1%} (95 % interval), ± {asked:.1%} asked"
    return Observed(width / asked, note)


def _described(claim: Claim) -> Hashable:
    """What is equal of repeats in a file that does not say which rows these are."""
    tool = (claim.lineage.format, claim.lineage.tool, claim.lineage.tool_version)
    told = tuple(str(claim.unread.get(name)) for name in TOLD_APART)
    return (claim.label, *tool, claim.asked, claim.kind, *_lengths(claim), *told, unread_columns(claim))


def _says_load(claim: Claim) -> bool:
    """Whether two such claims can be known to be the same load: a table may keep its scenario in a title."""
    asked = claim.asked
    return asked.concurrency is not None or asked.request_rate_per_s is not None or asked.batch is not None


def _lengths(claim: Claim) -> tuple[str, ...]:
    """Mean prompt and answer to two digits: a file may not state the requested lengths."""
    totals = (claim.said.total_input_tokens, claim.said.total_output_tokens)
    return tuple(f"{ratio(total, claim.said.completed) or 0.0:.1e}" for total in totals)


def _throughput(claim: Claim) -> float | None:
    said = claim.said
    stated = (said.output_throughput_tok_per_s, said.total_throughput_tok_per_s, said.request_throughput_per_s)
    return next((rate for rate in stated if rate is not None), None)


def _chance_of_arrivals(claim: Claim) -> float:
    """By how much the throughput of an open loop may vary since its requests come at random; 0 of a closed one."""
    requests = claim.said.completed or claim.asked.request_count
    if not claim.asked.request_rate_per_s or not requests:
        return 0.0
    return STANDARD_ERRORS * sqrt(LENGTHS_VARY / requests)


def _variation(claims: Sequence[Claim]) -> Observed | None:
    values = np.array([value for claim in claims if (value := _throughput(claim)) is not None])
    mean = float(values.mean())
    if len(values) < 2 or mean <= 0:  # noqa: PLR2004 - one has no spread
        return None
    spread, arrivals = float(values.std(ddof=1)), max(map(_chance_of_arrivals, claims))
    half = t_975(len(values) - 1) * spread / len(values) ** 0.5
    note = f"{len(values)} repeats, {mean:.6g} ± {half:.3g} (95 % interval)"
    found = max(0.0, spread / mean - arrivals)
    if all(claim.beside for claim in claims):
        found = min(found, MAY_BE_CHANCE)  # noise on a host that was watched is a doubt, and no failure
    lengths = max(map(_chance_of_drawing, claims))
    if MAY_BE_CHANCE < found <= MAY_BE_CHANCE + lengths:
        found = MAY_BE_CHANCE
    return Observed(found, f"{note}, {arrivals:.2g} of it by chance" if arrivals else note)


def _chance_of_drawing(claim: Claim) -> float:
    """By how much it may vary because repeats drew other lengths; 0 if both are known to be equal."""
    said = claim.said
    is_told = None not in (said.total_input_tokens, said.total_output_tokens)
    return 0.0 if is_told or claim.asked.has_fixed_lengths else chance_of_lengths(claim)
