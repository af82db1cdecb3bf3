"""How near a claim is to the limits of its GPUs: bytes read, operations, and the time of a first token.

Each share is of a bound that no run passes. Where an input has a range (the precision of the KV cache, which experts a
batch touches, how many sequences run together) the bound that is highest decides what is impossible.
"""

from bench import evidence_columns as ev
from bench.audit.claim import Claim
from bench.audit.evidence.deployment import Deployment, deployment
from bench.audit.evidence.evidence import EvidenceByColumn, MissingInput, Observed, Subject, observed
from bench.audit.evidence.rates import (
    decoding,
    input_tok_per_s,
    mean_context,
    mean_isl,
    most_together,
    output_tok_per_s,
    total_tok_per_s,
)
from bench.metrics import ratio
from bench.physics import (
    GIB,
    Group,
    decode_flops,
    decode_step_bytes,
    kv_elements,
    kv_read_bytes,
    least_flops,
    prefill_flops,
)
from bench.wording import counted

_LENGTHS = "the lengths of prompts and answers are unknown"
_RATE = "the throughput is unknown"
# Of the TTFT, best first: no percentile from the median up is below what one prompt takes alone.
OF_EACH = ("median", "p50", "p75", "p90", "p95", "p99", "p999", "max")


def roofline_shares(claim: Claim, subject: Subject) -> EvidenceByColumn:
    """Shares of the rooflines that a served claim reaches; empty if it was not measured or not served."""
    if claim.outcome != "measured" or not _is_served(claim):
        return {}
    found = deployment(claim, subject)
    if isinstance(found, MissingInput):
        return dict.fromkeys((ev.MBU, ev.MFU, ev.PREFILL_SHARE), found)
    return {**_bandwidth(claim, found), **_compute(claim, found), **_far_below(claim, found), **_prefill(claim, found)}


def _is_served(claim: Claim) -> bool:
    return bool(claim.latency_s) or output_tok_per_s(claim) is not None or total_tok_per_s(claim) is not None


def _bandwidth(claim: Claim, on: Deployment) -> EvidenceByColumn:
    column = ev.MBU_AMD if on.group.gpu.vendor == "AMD" else ev.MBU
    speculated = _speculated(claim)
    if isinstance(speculated, MissingInput):
        return {column: speculated}
    by_rate, by_pace = _read_for_rate(claim, on, speculated), _read_for_pace(claim, on, speculated)
    known = [share for share in (by_rate, by_pace) if isinstance(share, Observed)]
    if not known:
        return {column: by_rate}
    found: EvidenceByColumn = {column: max(known, key=lambda share: share.value)}
    batch, output, context = most_together(claim), output_tok_per_s(claim), mean_context(claim)
    if on.model.moe_layers and batch and output is not None and context is not None:
        read = decode_step_bytes(on.model, on.group, batch, 0) + batch * _sequence_bytes(on, context)
        share = output / speculated / batch * read / on.bytes_per_s
        found[ev.MBU_EXPERTS] = Observed(
            share, f"each step of {batch} reads {read / 1e9:.1f} GB with evenly chosen experts"
        )
    return found


def _read_for_rate(claim: Claim, on: Deployment, speculated: float) -> Observed | MissingInput:
    """Of the bandwidth, what the output throughput reads at least: the most sequences a step, the fewest experts."""
    output, context, stated = output_tok_per_s(claim), mean_context(claim), most_together(claim)
    if output is None:
        return MissingInput(_RATE)
    if context is None:
        if stated is None:
            return MissingInput(_LENGTHS)
        context = 0.0  # the weights alone
    per_sequence = _sequence_bytes(on, context)
    # Of one group; never more than its memory holds, which is all of a context, however little of it a step reads.
    held = kv_elements(on.model, context) * on.group.kv_bytes * on.kv_copies
    room = on.group.count * on.group.gpu.mem_gib_device * GIB / max(1.0, held)
    batch = max(1.0, room if stated is None else min(room, stated / on.replicas))
    read = _least_weights(on) + batch * per_sequence
    share = output / speculated / on.replicas / batch * read / on.group.bytes_per_s
    note = (
        f"{output:.1f} tok/s with {counted(batch, 'sequence')} per step read {read / 1e9:.2f} GB per step, "
        f"{share * on.bytes_per_s / 1e12:.2f} TB/s of {on.bytes_per_s / 1e12:.2f}"
    )
    return Observed(share, note)


def _read_for_pace(claim: Claim, on: Deployment, speculated: float) -> Observed | MissingInput:
    """Of the bandwidth, what one sequence alone reads in the time that a token takes."""
    tpot = claim.latency("tpot", "mean") or claim.latency("tpot", "median")
    if not tpot:
        return MissingInput("the time per token is unknown")
    read = _least_weights(on) + _sequence_bytes(on, mean_isl(claim) or 0.0)
    share = read / on.group.bytes_per_s / (tpot * speculated)
    return Observed(share, f"{read / 1e9:.2f} GB in {1e3 * tpot:.2f} ms per token on {_gpus(on.group)}")


def _least_weights(on: Deployment) -> float:
    # A step of one sequence: the experts of one token, whatever the batch.
    return decode_step_bytes(on.model, on.group, 1, 0)


def _sequence_bytes(on: Deployment, context: float) -> float:
    return kv_read_bytes(on.model, on.group, context) * on.kv_copies


def _speculated(claim: Claim) -> float | MissingInput:
    """Tokens that a step gives a sequence in the mean."""
    asked = claim.asked
    if asked.spec_tokens_per_step is not None:
        return asked.spec_tokens_per_step
    if asked.is_speculative:
        return MissingInput("the tokens per step of speculative decoding are unknown")
    return 1.0


def _compute(claim: Claim, on: Deployment) -> EvidenceByColumn:
    flops = _flops(claim, on)
    if flops is None:
        return {ev.MFU: MissingInput(_RATE)}
    note = (
        f"{flops / 1e12:.1f} TFLOP/s of {on.flops_per_s / 1e12:.1f} dense, on {on.gpu_count:.0f} x {on.group.gpu.gpu}"
    )
    return {ev.MFU: Observed(flops / on.flops_per_s, note)}


def _flops(claim: Claim, on: Deployment) -> float | None:
    """The least operations a second that the tokens take; without attention if the lengths are unknown."""
    output, given = output_tok_per_s(claim), input_tok_per_s(claim)
    isl, context = mean_isl(claim), mean_context(claim)
    if output is None:
        total = total_tok_per_s(claim)
        return None if total is None else total * _prefill_flops_a_token(on, None)
    fresh = computed_share(claim)
    # What a cache may have given is left out.
    prompts = 0.0 if given is None or fresh is None else given * fresh * _prefill_flops_a_token(on, isl)
    return output * decode_flops(on.model, context or 0.0) + prompts


def _prefill_flops_a_token(on: Deployment, isl: float | None) -> float:
    if not isl:
        return least_flops(on.model)
    return prefill_flops(on.model, isl) / isl


def computed_share(claim: Claim) -> float | None:
    """The share of prompt tokens that was computed; None if a cache supplied an unknown part."""
    server = claim.server
    hits = None if server is None else ratio(server.prefix_hits, server.prefix_queries)
    if hits is not None:
        return max(0.0, 1.0 - hits)
    is_doubtful = claim.asked.prefix_caching is True and claim.asked.has_distinct_prompts is not True
    return None if is_doubtful or claim.asked.has_distinct_prompts is False else 1.0


def _far_below(claim: Claim, on: Deployment) -> EvidenceByColumn:
    """The higher of both shares, each counted as high as it can be; only where the load was there all the time."""
    batch, output, context, flops = (
        most_together(claim),
        output_tok_per_s(claim),
        mean_context(claim),
        _flops(claim, on),
    )
    is_closed = claim.asked.concurrency is not None or claim.asked.batch is not None
    is_tp_known = claim.asked.tp_size is not None or claim.asked.gpu_count == 1  # else the share is a lower bound
    is_kept_busy = is_closed and is_tp_known and not claim.asked.is_open_loop and claim.asked.request_rate_per_s is None
    if not is_kept_busy or batch is None or output is None or context is None or flops is None:
        return {}
    together = max(1.0, min(batch, decoding(claim) or batch) / on.replicas)
    read = decode_step_bytes(on.model, on.at_most, round(together), context)
    mbu = output / on.replicas / together * read / on.group.bytes_per_s
    mfu = flops / on.flops_per_s
    return {ev.BEST_OF_ROOFLINES: Observed(max(mbu, mfu), f"{mbu:.1%} of peak bandwidth, {mfu:.1%} of peak compute")}


def _prefill(claim: Claim, on: Deployment) -> EvidenceByColumn:
    ttft, isl, fresh = _ttft(claim), mean_isl(claim), computed_share(claim)
    if ttft is None:
        return {}
    if isl is None:
        return {ev.PREFILL_SHARE: MissingInput("the prompt length is unknown")}
    if fresh is None:
        return {ev.PREFILL_SHARE: MissingInput("the prefix cache's share of the prompt tokens is unknown")}
    # Convex in the length: prompts of several lengths take more in the mean than one of the mean length.
    least_s = fresh * prefill_flops(on.model, isl) / on.group.flops_per_s
    share = ratio(least_s, ttft)
    note = f"{isl:.0f} prompt tokens need at least {1e3 * least_s:.2f} ms on {_gpus(on.group)}"
    return {ev.PREFILL_SHARE: observed(share, "the TTFT is 0", note)}


def _ttft(claim: Claim) -> float | None:
    """The mean; if all prompts have one length, else a percentile from the median up, since all take as long."""
    is_of_one_length = claim.asked.has_fixed_lengths is not False and claim.asked.isl is not None
    known = claim.latency_s.get("ttft", {})
    names = ("mean", *(OF_EACH if is_of_one_length else ()))
    return next((known[name] for name in names if known.get(name) is not None), None)


def _gpus(group: Group) -> str:
    return f"{group.count} x {group.gpu.gpu}"
