"""Whether the memory that a claim needs is there, and whether its weights have their stated size."""

import re

from bench import evidence_columns as ev
from bench.audit.claim import Claim
from bench.audit.evidence.deployment import Deployment, deployment, unknown
from bench.audit.evidence.evidence import EvidenceByColumn, MissingInput, Observed, Subject
from bench.audit.evidence.rates import decoding, mean_context, mean_isl, mean_osl, most_together
from bench.audit.evidence.rounding import beyond, looseness
from bench.catalog.precisions import GGUF_BYTES, WEIGHT_BYTES
from bench.physics import GIB, checkpoint_bytes, kv_elements
from bench.wording import counted

BLOCK_TOKENS = 256  # of a KV cache, at most; engines count whole blocks
SIZED_LOW, SIZED_HIGH = 0.85, 1.25  # weights found over those of a precision
_OF_CONTEXT = re.compile(
    r"context|max[_ -]?model[_ -]?len|(?:sequence|prompt|input) (?:length|too long)|too many tokens|too long",
    re.IGNORECASE,
)


def memory_needs(claim: Claim, subject: Subject) -> EvidenceByColumn:
    """What memory says of the claim; also of one that failed, since a bound that is broken is why it did."""
    if claim.outcome == "not-run":
        return {}
    on = deployment(claim, subject)
    fit = {ev.MEMORY_FIT: on} if isinstance(on, MissingInput) else _fit(claim, on) | _at_start(claim, on)
    return {**fit, **_weights(claim, subject), **_context(claim, subject), **_kv_room(claim)}


def _at_start(claim: Claim, on: Deployment) -> EvidenceByColumn:
    """What an engine holds before the first request: one sequence of the maximum length, and the cache that it prints.

    vLLM does not start where the cache has no room for one such sequence.
    """
    asked, found = claim.asked, dict[str, Observed]()
    if asked.max_model_len and (asked.engine or "").lower() == "vllm":
        found[ev.MEMORY_FIT_LONGEST] = _share(claim, on, on.replicas, asked.max_model_len)
    longest = float(asked.max_model_len or on.model.native_ctx)
    tokens = claim.said.printed_kv_cache_tokens or asked.kv_cache_tokens
    most = claim.said.printed_kv_max_concurrency or asked.kv_max_concurrency
    if tokens:
        found[ev.MEMORY_FIT_PRINTED] = _share(claim, on, tokens / longest, longest)
    if tokens and most and asked.max_model_len and on.model.attn_window is None:
        computed = tokens / asked.max_model_len
        note = f"{tokens} tokens of KV cache over {asked.max_model_len} a request are {computed:.2f}"
        apart = beyond(most, computed, looseness(most) + BLOCK_TOKENS / asked.max_model_len)
        found[ev.KV_CONCURRENCY_REL] = Observed(apart, f"{note}, {most:.2f} stated")
    return {**found}


def _fit(claim: Claim, on: Deployment) -> EvidenceByColumn:
    isl, osl, running = mean_isl(claim), mean_osl(claim), decoding(claim)
    if isl is None or osl is None:
        return {ev.MEMORY_FIT: _needed(claim, on, 0.0, 0.0)}
    if running is not None:
        return {ev.MEMORY_FIT: _needed(claim, on, running, isl + osl / 2)}
    # The number of running requests is unknown: at least one ran.
    found: EvidenceByColumn = {ev.MEMORY_FIT: _needed(claim, on, 1.0, isl + osl)}
    asked = most_together(claim)
    # Requests that are all sent at once (offline) do not all run at once.
    is_said = claim.asked.concurrency is not None or claim.asked.batch is not None
    if asked is not None and is_said and not shares_prefixes(claim):
        found[ev.MEMORY_FIT_ASKED] = _needed(claim, on, asked, isl + osl / 2)
    return found


def _needed(claim: Claim, on: Deployment, sequences: float, context: float) -> Observed:
    """Of the memory that the engine may take, what weights and the KV of requests take at least."""
    return _share(claim, on, 0.0 if shares_prefixes(claim) else sequences, context)


def _share(claim: Claim, on: Deployment, sequences: float, context: float) -> Observed:
    weights = claim.asked.weights_gib if claim.asked.weights_source in ("log", "index") else None
    weights_gib = (weights or checkpoint_bytes(on.model, on.group.precision) / GIB) * on.replicas
    held = sequences * kv_elements(on.model, context)
    kv_gib = held * on.group.kv_bytes * on.kv_copies / GIB
    # Unknown utilization counts as all of the memory.
    room = on.gpu_count * on.group.gpu.mem_gib_device * (claim.asked.gpu_memory_utilization or 1.0)
    kv = f" and {kv_gib:.1f} GiB of KV for {counted(sequences, 'sequence')} of {context:.0f} tokens" if held else ""
    where = f"{on.gpu_count:.0f} x {on.group.gpu.gpu} with {room:.1f} GiB"
    note = f"weights of {weights_gib:.1f} GiB{kv} on {where}"
    return Observed((weights_gib + kv_gib) / room, note)


def shares_prefixes(claim: Claim) -> bool:
    """Whether sequences may hold KV together, so that no sum says what is resident."""
    asked = claim.asked
    return asked.has_distinct_prompts is False or (asked.prefix_caching is True and asked.has_distinct_prompts is None)


def _weights(claim: Claim, subject: Subject) -> EvidenceByColumn:
    """Weights as found over those of the claimed precision."""
    found, model, precision = claim.asked.weights_gib, subject.model, subject.precision
    column = ev.WEIGHT_BYTES_RATIO_DEVICE if claim.asked.weights_source == "device" else ev.WEIGHT_BYTES_RATIO
    if found is None:
        return {column: MissingInput("the size of the weights is unknown: pass --weights-gb")}
    if model is None:
        return {column: unknown("model", claim.asked.model)}
    if precision is None:
        return {column: unknown("precision", claim.asked.precision)}
    size = found * GIB
    # All weights of this precision, or embeddings in 16 bits: the checkpoint may be either, or between. The tensors of
    # a GGUF file may have up to 8 bits, whatever it is named after.
    plain = model.params_total * WEIGHT_BYTES[precision]
    is_mixed = precision in GGUF_BYTES
    whole = model.params_total * GGUF_BYTES["q8_0"] if is_mixed else checkpoint_bytes(model, precision)
    expected = min(max(size, min(plain, whole)), max(plain, whole))
    return {column: Observed(size / expected, _sized(size, expected, precision, model.params_total))}


def _sized(size: float, expected: float, precision: str, params: int) -> str:
    """For a person: which precision they have the size of, and what the claimed one would be."""
    would = f"{precision.upper()} would be {expected / 1e9:.1f} GB"
    if SIZED_LOW <= size / expected <= SIZED_HIGH:
        return f"weights of {size / 1e9:.1f} GB; {would}"
    plain = [name for name in WEIGHT_BYTES if name not in GGUF_BYTES]
    near = min(plain, key=lambda name: abs(size / (params * WEIGHT_BYTES[name]) - 1))
    if SIZED_LOW <= size / (params * WEIGHT_BYTES[near]) <= SIZED_HIGH:
        return f"weights of {size / 1e9:.1f} GB are {near.upper()}-sized; {would}"
    return f"weights of {size / 1e9:.1f} GB fit no known precision; {would}"


def _context(claim: Claim, subject: Subject) -> EvidenceByColumn:
    isl, osl, limit = mean_isl(claim), mean_osl(claim), claim.asked.max_model_len
    if isl is None or osl is None:
        return {}
    # The requested lengths, if they exceed the observed: a refused prompt is not in the observed ones.
    tokens = max(isl + osl, (claim.asked.isl or 0.0) + (claim.asked.osl or 0.0))
    note = f"{tokens:.0f} tokens per request"
    found: EvidenceByColumn = {
        ev.CONTEXT_OVER_MAX: MissingInput("the maximum context of the server is unknown: pass --max-model-len")
    }
    if limit:
        found[ev.CONTEXT_OVER_MAX] = Observed(tokens / limit, f"{note}, maximum context {limit}")
    if subject.model is not None:
        native = subject.model.native_ctx
        found[ev.CONTEXT_OVER_NATIVE] = Observed(
            tokens / native, f"{note}; native context of {subject.model.model} {native}"
        )
    return found | _cause(claim, tokens)


def _cause(claim: Claim, tokens: float) -> EvidenceByColumn:
    """1 where a failure is blamed on a context that was long enough."""
    cause, limit = claim.said.stated_cause, claim.asked.max_model_len
    if claim.outcome != "failed" or cause is None or _OF_CONTEXT.search(cause) is None:
        return {}
    if not limit:
        return {
            ev.CAUSE_CONTRADICTED: MissingInput("the maximum context of the server is unknown: pass --max-model-len")
        }
    return {
        ev.CAUSE_CONTRADICTED: Observed(
            float(tokens <= limit), f"{cause[:80]!r}, but only {tokens:.0f} of {limit} tokens were requested"
        )
    }


def _kv_room(claim: Claim) -> EvidenceByColumn:
    server, running, context = claim.server, decoding(claim), mean_context(claim)
    room = (
        claim.said.printed_kv_cache_tokens
        or claim.asked.kv_cache_tokens
        or (server.kv_cache_tokens if server else None)
    )
    if not room or claim.outcome != "measured":
        return {}
    if running is None or context is None:
        return {ev.KV_TOKENS_OVER_ROOM: MissingInput("the number or length of running sequences is unknown")}
    if shares_prefixes(claim):
        return {ev.KV_TOKENS_OVER_ROOM: MissingInput("the shared part of the KV cache is unknown")}
    note = f"{counted(running, 'sequence')} of {context:.0f} tokens each, capacity {room:.0f} tokens"
    column = (
        ev.KV_TOKENS_OVER_ROOM if server is not None and server.preemptions == 0 else ev.KV_TOKENS_OVER_ROOM_PREEMPTED
    )
    return {column: Observed(running * context / room, note)}
