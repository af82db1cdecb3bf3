"""Bounds of a claim whose GPU or precision could be several: the reading that allows most decides."""

from collections.abc import Sequence
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


def under_every_reading(evidence: RowEvidence) -> RowEvidence:
    """The same evidence; where names of the claim are ambiguous, each share is the least of all readings."""

    def least(claim: Claim, subject: Subject) -> EvidenceByColumn:
        readings = _readings(subject)
        own = evidence(claim, subject)
        if len(readings) < 2:  # noqa: PLR2004 - one reading is no choice
            return own
        found = {name: evidence(claim, reading) for name, reading in readings.items()}
        columns = dict.fromkeys(column for each in found.values() for column in each)
        shares = {column: _least(column, found) for column in columns if column in _SHARES}
        rest = {column: value for column, value in own.items() if column not in _SHARES}
        return rest | {column: value for column, value in shares.items() if value is not None}

    return least


def _readings(subject: Subject) -> dict[str, Subject]:
    """Each reading by its name: the GPU, the precision or both, as far as they are ambiguous."""
    gpus = (subject.gpu,) if subject.gpu is not None else subject.gpus or (None,)
    precisions = (subject.precision,) if subject.precision is not None else subject.precisions or (None,)
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
