"""Evidence from the claim alone: what it states twice must agree."""

from bench import evidence_columns as ev
from bench.audit.claim import Claim
from bench.audit.evidence.arithmetic import rates, statistics_again, sums, window
from bench.audit.evidence.client_server import client, client_server
from bench.audit.evidence.completeness import cancelled, completeness, cut_short, impossible
from bench.audit.evidence.evidence import EvidenceByColumn, Observed, Subject
from bench.audit.evidence.latency import e2el_identity, sums_of_means
from bench.audit.evidence.lengths import lengths, usage
from bench.audit.evidence.queueing import first_iteration, offered, queueing
from bench.audit.evidence.rates import peak
from bench.audit.evidence.statistics import intervals, order, quality, tails
from bench.audit.evidence.stream import bursts, chunks
from bench.audit.evidence.successful import SuccessfulRequests

_OF_BOTH = (
    *(completeness, cut_short, impossible, sums, statistics_again, window, e2el_identity, sums_of_means, queueing),
    *(first_iteration, offered, chunks, bursts, lengths, usage, client, client_server, tails, intervals),
)
_IMPLIED = (ev.CHUNK_TOKEN_RATIO_IMPLIED, ev.TOKENS_PER_CHUNK)
_OF_CLAIM = (cancelled, rates, order, peak, quality)


def identities(claim: Claim, _subject: Subject) -> EvidenceByColumn:
    """The evidence that needs only the claim; of an unmeasured one, only whether it was cancelled."""
    if claim.outcome != "measured":
        return cancelled(claim)
    answered = SuccessfulRequests(claim)
    found: EvidenceByColumn = {}
    for of_claim in _OF_CLAIM:
        found |= of_claim(claim)
    for of_both in _OF_BOTH:
        found |= of_both(claim, answered)
    return _alone(_without_slip(found))


def _without_slip(found: EvidenceByColumn) -> EvidenceByColumn:
    """A latency in another unit is one finding; then the means say nothing about the stream."""
    slip = found[ev.UNIT_FACTOR]
    if isinstance(slip, Observed) and slip.value != 1.0 and ev.CHUNK_TOKEN_RATIO_IMPLIED in found:
        return {name: value for name, value in found.items() if name not in _IMPLIED}
    return found


def _alone(found: EvidenceByColumn) -> EvidenceByColumn:
    """If nothing was measured, no other evidence counts."""
    nothing = found[ev.NOTHING_MEASURED]
    if isinstance(nothing, Observed) and nothing.value:
        return {column: found[column] for column in (ev.NOTHING_MEASURED, ev.FAILURE_SHARE, ev.ANSWERED_SHARE)}
    return found
