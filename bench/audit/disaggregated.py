"""Whether an engine of two servers works as two: one computes the prompts, and their KV cache reaches the other."""

from collections.abc import Mapping

import numpy as np

from bench import evidence_columns as ev
from bench.audit.rules import Evidence
from bench.engines.config import parse_flags
from bench.engines.disaggregated import kv_transfer_of
from bench.engines.vllm import block_tokens
from bench.loadgen.report import LoadReport
from bench.metrics import ratio
from bench.record import RunRecord


def disaggregated_evidence(record: RunRecord, report: LoadReport, deltas: Mapping[str, float] | None) -> Evidence:
    """Empty where the engine is one server, or does not count."""
    found = kv_transfer_of(deltas)
    prompt = (deltas or {}).get("prompt_tokens_total")
    if found is None or not prompt:
        return {}
    return {
        ev.PREFILL_PASSED_SHARE: ratio(found.prefill_prompt_tokens, prompt),
        ev.KV_COMPUTED_AGAIN_SHARE: kv_computed_again_share(record, report, deltas),
    }


def kv_computed_again_share(record: RunRecord, report: LoadReport, deltas: Mapping[str, float] | None) -> float | None:
    """Prompt tokens that the decode server computed though it could have them, over all; None where not counted.

    Whole blocks are handed over, and never the last token of a prompt, of which the first answer token comes.
    """
    found, counted = kv_transfer_of(deltas), deltas or {}
    prompt, requests = counted.get("prompt_tokens_total"), report.requests
    lengths = requests.input_tokens[requests.is_ok & (requests.input_tokens > 0)]
    if found is None or found.received_tokens is None or not prompt or not lengths.size:
        return None
    flags = parse_flags(record.server.argv if record.server else record.asked.engine.flags)
    block = block_tokens(flags, has_gpu=bool(record.host and record.host.gpus))
    rest = lengths - np.maximum(lengths - 1, 0) // block * block
    computed = prompt - found.received_tokens - counted.get("prefix_cache_hits_total", 0.0)
    return float(max(computed / prompt - rest.sum() / lengths.sum(), 0.0))
