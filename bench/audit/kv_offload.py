"""Whether the tier behind the KV cache is used, by its counters."""

from collections.abc import Mapping

from bench import evidence_columns as ev
from bench.audit.rules import Evidence
from bench.engines.kv_offload import kv_offload_of, kv_tier_of
from bench.record import RunRecord


def kv_offload_evidence(record: RunRecord, deltas: Mapping[str, float] | None) -> Evidence:
    """Empty where the flags ask for no tier behind the KV cache, or the server counts none."""
    is_used = kv_tier_of(deltas).is_used
    if kv_offload_of(record.asked.engine.flags) is None or is_used is None:
        return {}
    return {ev.KV_OFFLOAD_IDLE: float(not is_used)}
