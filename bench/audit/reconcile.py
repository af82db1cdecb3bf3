"""The client's counts against the server's: every token and request that one has, the other must have counted."""

from collections.abc import Mapping

import numpy as np

from bench import evidence_columns as ev
from bench.audit.disaggregated import kv_transfer_of
from bench.audit.rules import Evidence
from bench.engines.kv_offload import kv_tier_of
from bench.loadgen.report import LoadReport
from bench.metrics import Requests, ratio
from bench.record import RunRecord


def server_counts(report: LoadReport, deltas: Mapping[str, float] | None) -> Evidence:
    """Ratios of the server's counts to the client's, and what the server says went wrong."""
    if not deltas:
        return {}
    requests = report.requests
    good = requests.is_ok
    cancelled = requests.is_cancelled
    output = float(requests.output_tokens[requests.output_tokens > 0].sum()) + (report.warmup_output_tokens or 0)
    prompt = float(requests.input_tokens[requests.input_tokens > 0].sum()) + (report.warmup_input_tokens or 0)
    # Of a cancelled request the client knows the tokens that came, and its prompt was like the others.
    output += float(np.maximum(requests.event_tokens[cancelled], 0).sum())
    prompt *= 1 + (ratio(float(cancelled.sum()), float(good.sum())) or 0.0)
    count = int(good.sum()) + (report.warmup_count or 0)
    served = deltas.get("generation_tokens_total")
    finished = _ended(deltas, "stop", "length")
    # With its own caching off vLLM still asks the tier behind it. Other engines do not count what they look up.
    looked_up = deltas.get("prefix_cache_queries_total", deltas.get("prompt_tokens_total"))
    queried = looked_up or kv_tier_of(deltas).looked_up
    # What a prefill server hands over, it computed for the same request: nothing was cached.
    hits = _hits(deltas) if kv_transfer_of(deltas) is None else deltas.get("prefix_cache_hits_total")
    return {
        ev.SERVER_CLIENT_TOKENS_RATIO: ratio(served, output),
        ev.SERVER_CLIENT_PROMPT_RATIO: ratio(deltas.get("prompt_tokens_total"), prompt),
        ev.SERVER_CLIENT_REQUESTS_RATIO: ratio(finished, count),
        ev.COUNTERS_FELL: float(sum(delta < 0 for delta in deltas.values())),
        ev.SERVER_ERRORS: _unasked_ends(requests, _ended(deltas, "abort", "error")),
        ev.PREFIX_HIT_SHARE: _unplanned_hits(report, hits, queried),
        ev.PREEMPTIONS: deltas.get("num_preemptions_total"),
    }


def _unasked_ends(requests: Requests, ended: float | None) -> float | None:
    """Requests that the server aborted and that the client did not cancel; vLLM 0.32.0 counts no cancelled one."""
    return None if ended is None else max(ended - float(requests.is_cancelled.sum()), 0.0)


def reconciled(record: RunRecord, report: LoadReport, deltas: Mapping[str, float] | None) -> Evidence:
    """How far the server's counts are outside of what the client can account for; 0 where they agree.

    Every answer and token that the client has, the server must have counted. What the server did for a request that
    failed is not known to the client: it may be anything from nothing to the whole request.
    """
    if not deltas or report.warmup_failed_count is None:
        return {}
    requests, warm_failed = report.requests, report.warmup_failed_count
    failed = ~requests.is_ok
    output, prompt = np.maximum(requests.output_tokens, 0), np.maximum(requests.input_tokens, 0)
    owed = float(
        np.maximum(record.asked.workload.osl - output[failed], 0).sum() + warm_failed * record.asked.workload.osl
    )
    # A prompt whose answer never came has a length that only the context bounds.
    unread = (int((failed & (requests.input_tokens < 0)).sum()) + warm_failed) * record.asked.engine.max_model_len
    answered = int(requests.is_ok.sum()) + (report.warmup_count or 0) - warm_failed
    seen_output = float(output.sum()) + (report.warmup_output_tokens or 0)
    seen_prompt = float(prompt.sum()) + (report.warmup_input_tokens or 0)
    return {
        ev.SERVER_CLIENT_TOKENS_DIFF: _beyond(deltas.get("generation_tokens_total"), seen_output, owed),
        ev.SERVER_CLIENT_PROMPT_DIFF: _beyond(deltas.get("prompt_tokens_total"), seen_prompt, unread),
        ev.SERVER_CLIENT_REQUESTS_DIFF: _beyond(
            _ended(deltas, "stop", "length"), answered, int(failed.sum()) + warm_failed
        ),
    }


def _beyond(counted: float | None, least: float, slack: float) -> float | None:
    """How far a count is below `least` (negative) or above `least + slack`; 0 inside, None where there is no count."""
    if counted is None:
        return None
    return min(counted - least, 0.0) or max(counted - least - slack, 0.0)


def _unplanned_hits(report: LoadReport, hits: float | None, queried: float | None) -> float | None:
    """The share of prompt tokens by which the prefix cache's hits differ from those that the prompts were made for."""
    planned = planned_hits(report)
    if hits is None or planned is None:
        return None
    # With caching off vLLM asks the cache nothing: no question, no hit.
    return abs(hits - planned) / queried if queried else 0.0


def _hits(deltas: Mapping[str, float]) -> float | None:
    """Tokens out of the device's prefix cache or the tier behind it; None where they are not counted."""
    hits = deltas.get("prefix_cache_hits_total")
    return None if hits is None else hits + (kv_tier_of(deltas).hits or 0.0)


def planned_hits(report: LoadReport) -> float | None:
    """How many prompt tokens the prompts were made to find in the prefix cache; None: the driver does not say."""
    return 0.0 if report.planned is None else report.planned.cached_tokens


def _ended(deltas: Mapping[str, float], *reasons: str) -> float | None:
    ends = [deltas[name] for reason in reasons if (name := f"request_success_total.{reason}") in deltas]
    return sum(ends) if ends or "request_success_total" in deltas else None


def cached_diff(report: LoadReport, deltas: Mapping[str, float] | None) -> float | None:
    """Hits of the prefix cache and its tier by the server's counters, less those in its answers."""
    hits = _hits(deltas or {})
    return None if hits is None or report.cached_tokens is None else hits - report.cached_tokens
