"""Whether an engine of two servers works as two: one computes the prompts, and their KV cache reaches the other.

The router's page of metrics has the counters of the decode server by their own names, those of the prefill server with
`prefill_` before theirs, and its own with `router_`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bench import evidence_columns as ev
from bench.audit.rules import Evidence
from bench.engines.config import parse_flags
from bench.engines.vllm import block_tokens
from bench.loadgen.report import LoadReport
from bench.metrics import ratio
from bench.record import RunRecord


@dataclass(frozen=True)
class KvTransfer:
    """What the counters of router and servers show; None where one is not counted.

    Times are means over the requests, in seconds. `prefill_s` lasts from a request to the end of its prefill, and
    `handover_s` from there to the first token of the decode server: it has the transfer in it. `transfer_s` and
    `transferred_bytes` are the connector's own, of NIXL only.
    """

    requests: float | None
    prefill_prompt_tokens: float | None
    received_tokens: float | None  # prompt tokens that the decode server did not compute
    prefill_s: float | None
    handover_s: float | None
    transfer_s: float | None
    transferred_bytes: float | None


def kv_transfer_of(deltas: Mapping[str, float] | None) -> KvTransfer | None:
    """What the counters show; None of an engine that is one server."""
    if not deltas or "router_requests_total" not in deltas:
        return None

    def mean(name: str) -> float | None:
        return ratio(deltas.get(f"{name}_sum"), deltas.get(f"{name}_count"))

    return KvTransfer(
        requests=deltas["router_requests_total"],
        prefill_prompt_tokens=deltas.get("prefill_prompt_tokens_total"),
        received_tokens=deltas.get("external_prefix_cache_hits_total"),
        prefill_s=mean("router_prefill_seconds"),
        handover_s=mean("router_handover_seconds"),
        transfer_s=mean("nixl_xfer_time_seconds"),
        transferred_bytes=deltas.get("nixl_bytes_transferred_sum"),
    )


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
