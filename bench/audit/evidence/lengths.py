"""Whether prompts and answers have the requested lengths: by totals, or as two rates imply it."""

from math import sqrt

from bench import evidence_columns as ev
from bench.audit.claim import Claim
from bench.audit.evidence.evidence import EvidenceByColumn, MissingInput, Observed
from bench.audit.evidence.rates import stated_output_tok_per_s, stated_total_tok_per_s
from bench.audit.evidence.rounding import looseness, rel
from bench.audit.evidence.successful import SuccessfulRequests
from bench.metrics import ratio

# Standard deviation of lengths drawn evenly from 0 to twice their mean, over that mean: no range is wider.
SPREAD = 1 / sqrt(3)
STANDARD_ERRORS = 3.0
PER_SLOT = 10  # requests that a benchmark sends for each one in flight
MAY_BE_CHANCE = 0.1  # so far off is the most that is held against lengths of which a file does not say how they vary
Length = tuple[float | None, float]  # mean tokens of a request, and the share of it that printing leaves open


def lengths(claim: Claim, _answered: SuccessfulRequests) -> EvidenceByColumn:
    """Observed over requested lengths, less what chance explains if the requested ones were drawn.

    If a file does not state whether they were, a difference that chance may explain is only suspect.
    """
    said, asked, server = claim.said, claim.asked, claim.server
    out = _tokens(claim, said.total_output_tokens, said.output_throughput_tok_per_s, said.mean_output_tokens)
    prompts = _tokens(claim, said.total_input_tokens, said.input_throughput_tok_per_s, said.mean_input_tokens)
    if server is not None and ratio(server.prompt_tokens, server.requests) is not None:
        prompts = ratio(server.prompt_tokens, server.requests), 0.0
    found: EvidenceByColumn = {
        ev.OSL_RATIO: _length(claim, out, asked.osl, 0.0),
        ev.ISL_RATIO: _length(claim, prompts, asked.isl, 1.0),  # a tokenizer may put one token in front of a prompt
    }
    mismatched = ratio(said.osl_mismatch_count, said.completed)
    if mismatched is not None:
        note = f"{said.osl_mismatch_count} of {said.completed}, as the tool counted them"
        found[ev.OSL_MISMATCH_SHARE] = Observed(mismatched, note)
    both = _tokens(claim, said.total_tokens, stated_total_tok_per_s(claim))
    if both[0] is None:
        both = _of_rates(claim)
    if both[0] is not None and out[0] is None and asked.isl is not None and asked.osl is not None:
        found[ev.TOTAL_LENGTH_RATIO] = _length(claim, both, asked.isl + asked.osl, 1.0)
    return found


def _of_rates(claim: Claim) -> Length:
    """All tokens of a request, if answers have the requested length and only tokens a second are stated."""
    total, output = stated_total_tok_per_s(claim), stated_output_tok_per_s(claim)
    share = ratio(total, output)
    return None if share is None or claim.asked.osl is None else share * claim.asked.osl, looseness(total, output)


def _tokens(claim: Claim, total: int | None, tok_per_s: float | None, mean: float | None = None) -> Length:
    """Mean tokens of a request: the total over the requests, else as stated, else by tokens and requests a second."""
    said = claim.said
    requests = said.completed or (claim.asked.request_count if not said.failed else None)
    counted = ratio(total, requests)
    counted = mean if counted is None else counted
    if counted is not None or said.has_trimmed_rates:
        return counted, 0.0
    rate = said.request_throughput_per_s
    return ratio(tok_per_s, rate), looseness(tok_per_s, rate)


def _length(claim: Claim, observed: Length, asked: float | None, free: float) -> Observed | MissingInput:
    counted, loose = observed
    if counted is None or not asked:
        return MissingInput("the requested length, the tokens or the requests are unknown")
    note = f"{counted:.6g} tokens per request, {asked:.6g} requested"
    free += loose * counted
    off = max(0.0, abs(counted - asked) - free) / asked
    if claim.asked.has_fixed_lengths is False:
        off = max(0.0, off - chance_of_lengths(claim))
    elif claim.asked.has_fixed_lengths is None and MAY_BE_CHANCE < off <= MAY_BE_CHANCE + chance_of_lengths(claim):
        off = MAY_BE_CHANCE
    return Observed(1 + off if counted > asked else 1 - off, note)


def chance_of_lengths(claim: Claim) -> float:
    """How far a mean of drawn lengths may differ, as a share of the requested; ten requests a slot if unknown."""
    asked = claim.asked
    requests = claim.said.completed or asked.request_count or PER_SLOT * (asked.concurrency or PER_SLOT)
    return STANDARD_ERRORS * SPREAD / sqrt(max(1, requests))


def usage(claim: Claim, _answered: SuccessfulRequests) -> EvidenceByColumn:
    """The server's own count in its answers against the client's tokenizer; nothing where a file has only one."""
    said = claim.said
    one_each = said.completed or 0
    pairs = (
        ("output", said.usage_output_tokens, said.total_output_tokens, 0),
        ("prompt", said.usage_input_tokens, said.total_input_tokens, one_each),
    )
    known = [
        (
            max(0.0, rel(by_server, own) - free / max(by_server, own, 1)),
            f"{name} tokens: {by_server} in the server's usage, {own} by the client",
        )
        for name, by_server, own, free in pairs
        if by_server is not None and own is not None
    ]
    return {ev.USAGE_REL: Observed(*max(known))} if known else {}
