"""Whether an event of the stream is a token that came as it was made."""

import numpy as np

from bench import evidence_columns as ev
from bench.audit.claim import Claim
from bench.audit.evidence.evidence import EvidenceByColumn, MissingInput, Observed
from bench.audit.evidence.rounding import looseness
from bench.audit.evidence.successful import SuccessfulRequests

BURST_S = 1e-4  # no engine makes a token in less; a buffer lets several go at once


def chunks(claim: Claim, answered: SuccessfulRequests) -> EvidenceByColumn:
    """Events of the stream for each token: counted in the arrays, else by the time a token against the mean gap.

    Nothing where the client says how many tokens each event brought: then they need not be alike.
    """
    if claim.series is not None and claim.series.has_event_tokens:
        return {}
    counts, tokens = answered.gap_count, answered.output_tokens
    if counts is not None and tokens is not None and tokens.sum() > 0:
        return _counted(int((counts + 1).sum()), int(tokens.sum()), len(counts))
    osl, gap = answered.mean_osl, answered.mean("itl")
    e2el, ttft, tpot = answered.mean("e2el"), answered.mean("ttft"), answered.mean("tpot")
    if e2el is not None and ttft is not None and osl is not None and osl > 1:
        tpot = (e2el - ttft) / (osl - 1)
    elif not answered.has_equal_lengths:
        tpot = None  # a mean by request, where a mean gap is one by token
    if not gap or not tpot:
        lacking = "gaps and tokens of each request, or mean ITL and E2EL, are missing; mean TPOT is by request"
        return {ev.CHUNK_TOKEN_RATIO: MissingInput(lacking)}
    per_token = _forgiven(tpot / gap, osl, looseness(gap, tpot))
    note = f"{tpot:.6g} s per token, {gap:.6g} s between events"
    return {
        ev.CHUNK_TOKEN_RATIO_IMPLIED: Observed(per_token, note),
        ev.TOKENS_PER_CHUNK: Observed(1 / per_token, note),
    }


def _counted(events: int, tokens: int, requests: int) -> EvidenceByColumn:
    """One event a request more or less is the one that brings the usage, or none for the last token."""
    missing = tokens - events
    unexplained = max(0, missing - requests) - max(0, -missing - requests)
    note = f"{events} events, {tokens} tokens"
    return {
        ev.CHUNK_TOKEN_RATIO: Observed(1 - unexplained / tokens, note),
        ev.TOKENS_PER_CHUNK: Observed(tokens / max(1, tokens - unexplained), note),
    }


def _forgiven(per_token: float, osl: float | None, loose: float) -> float:
    """The ratio, moved towards 1 by one event a request and by what printing explains."""
    allowed = loose + (1 / (osl - 1) if osl is not None and osl > 1 else 0.0)
    return 1 + max(0.0, per_token - 1 - allowed) - max(0.0, 1 - per_token - allowed)


def bursts(_claim: Claim, answered: SuccessfulRequests) -> EvidenceByColumn:
    """The share of gaps that are too short for any engine."""
    gaps = answered.gap_s
    if gaps is None or not len(gaps):
        return {ev.BURST_SHARE: MissingInput("the gaps of each request are missing")}
    return {
        ev.BURST_SHARE: Observed(
            float(np.mean(gaps < BURST_S)), f"{len(gaps)} gaps, median {answered.median('itl') or 0:.3g} s"
        )
    }
