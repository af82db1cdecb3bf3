"""Bounds of a claim of which something could be several: its GPU, its precision, a number that is printed as a range.

The reading that allows most decides. A precision that is not stated could be any.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

from bench import evidence_columns as ev
from bench.audit.claim import Claim
from bench.audit.evidence.evidence import EvidenceByColumn, MissingInput, Observed, RowEvidence, Subject

# Shares of a limit: the smaller, the more is allowed. Evidence of other columns needs one reading.
_SHARES = frozenset(
    {
        *(ev.MBU, ev.MBU_AMD, ev.MBU_EXPERTS, ev.MFU, ev.TRAIN_MFU, ev.PREFILL_SHARE),
        *(ev.MEMORY_FIT, ev.MEMORY_FIT_ASKED, ev.MEMORY_FIT_LONGEST, ev.MEMORY_FIT_PRINTED),
    }
)

# Of all precisions, what allows most is one of these: the usual one, the fastest ones, and the smallest weights.
_UNSTATED = ("bf16", "fp8", "fp4", "q2_k")


def under_every_reading(evidence: RowEvidence) -> RowEvidence:
    """The same evidence; where names of the claim are ambiguous, each share is the least of all readings."""

    def least(claim: Claim, subject: Subject) -> EvidenceByColumn:
        readings = _readings(claim, subject)
        own = evidence(claim, subject)
        if len(readings) < 2:  # noqa: PLR2004 - one reading leaves no choice
            return own
        found = {name: evidence(claim, reading) for name, reading in readings.items()}
        columns = dict.fromkeys(column for each in found.values() for column in each)
        shares = {column: _least(column, found) for column in columns if column in _SHARES}
        rest = {column: value for column, value in own.items() if column not in _SHARES}
        return rest | {column: value for column, value in shares.items() if value is not None}

    return least


def at_generous_ends(evidence: RowEvidence) -> RowEvidence:
    """The same evidence; each share is that of the ends of ranges and limits that allow most."""

    def least(claim: Claim, subject: Subject) -> EvidenceByColumn:
        rest = {name: value for name, value in evidence(exact(claim), subject).items() if name not in _SHARES}
        ends = {bound.name: bound.generous for bound in claim.bounds}
        printed = " and ".join(repr(bound.printed) for bound in claim.bounds if bound.generous is not None)
        shares = evidence(_with_numbers(claim, ends), subject)
        return rest | {name: _of_end(value, printed) for name, value in shares.items() if name in _SHARES}

    return _only_of_bounds(evidence, least)


def of_exact_numbers(evidence: RowEvidence) -> RowEvidence:
    """The same evidence of the numbers that are printed as such: a range is equal to nothing."""
    return _only_of_bounds(evidence, lambda claim, subject: evidence(exact(claim), subject))


def exact(claim: Claim) -> Claim:
    """The claim without its ranges, limits and rough numbers."""
    return _with_numbers(claim, dict.fromkeys(bound.name for bound in claim.bounds)) if claim.bounds else claim


def _only_of_bounds(evidence: RowEvidence, bounded: RowEvidence) -> RowEvidence:
    return lambda claim, subject: (bounded if claim.bounds else evidence)(claim, subject)


def _with_numbers(claim: Claim, numbers: Mapping[str, float | None]) -> Claim:
    """The claim with these numbers by their names; None takes one away."""
    latency = {metric: dict(statistics) for metric, statistics in claim.latency_s.items()}
    for name, value in numbers.items():
        metric, _, statistic = name.partition(".")
        if statistic:
            known = latency.setdefault(metric, {})  # type: ignore[arg-type]  # a bound's name begins with a metric
            known.pop(statistic, None)
            known.update({} if value is None else {statistic: value})
    said = {name: value for name, value in numbers.items() if "." not in name}
    return replace(
        claim,
        said=replace(claim.said, **said),  # type: ignore[arg-type]  # a bound's name is that of a rate
        latency_s={metric: known for metric, known in latency.items() if known},
    )


def _of_end(value: Observed | MissingInput, printed: str) -> Observed | MissingInput:
    if isinstance(value, MissingInput) or not printed:
        return value
    said = "impossible at every value of" if value.value > 1 else "at the end that allows most of"
    return replace(value, note=f"{value.note}; {said} {printed}")


def _readings(claim: Claim, subject: Subject) -> dict[str, Subject]:
    """Each reading by its name: the GPU, the precision or both, as far as they are ambiguous or not stated."""
    gpus = (subject.gpu,) if subject.gpu is not None else subject.gpus or (None,)
    unstated = _UNSTATED if claim.asked.precision is None else (None,)
    precisions = (subject.precision,) if subject.precision is not None else subject.precisions or unstated
    named: dict[str, Subject] = {}
    for gpu, precision in product(gpus, precisions):
        parts = (gpu.gpu if gpu and len(gpus) > 1 else None, precision if len(precisions) > 1 else None)
        named[" ".join(part for part in parts if part)] = replace(subject, gpu=gpu, precision=precision)
    return named


def _least(column: str, found: dict[str, EvidenceByColumn]) -> Observed | MissingInput | None:
    """The least share of all readings with the shares of the others; None where it does not apply to one of them."""
    each = {name: evidence.get(column) for name, evidence in found.items()}
    missing = next((value for value in each.values() if isinstance(value, MissingInput)), None)
    shares = {name: value for name, value in each.items() if isinstance(value, Observed)}
    if missing is not None or len(shares) < len(each):
        return missing
    best = min(shares.values(), key=lambda share: share.value)
    return replace(best, note=f"{best.note}; {_listed(shares)}")


def _listed(shares: dict[str, Observed]) -> str:
    several: Sequence[str] = [f"{name} {share.value:.0%}" for name, share in shares.items()]
    is_impossible = all(share.value > 1 for share in shares.values())
    return f"{'above 100% under' if is_impossible else 'least of'} every reading: {', '.join(several)}"
