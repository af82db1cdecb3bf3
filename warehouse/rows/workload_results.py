"""What single kinds of workload gave beside latencies and throughput."""

from collections import Counter
from collections.abc import Mapping

from bench.audit.cancelled import cancelled_of, overrun_share
from bench.audit.disaggregated import kv_computed_again_share, kv_transfer_of
from bench.audit.images import images_of
from bench.audit.repetition import repetition_of
from bench.engines.acceptance import acceptance_of
from bench.engines.kv_offload import kv_offload_of, kv_tier_of
from bench.engines.speculation import POSITIONS, speculation_of
from bench.loadgen.report import LoadReport
from bench.metrics import ratio
from bench.record import RunRecord
from bench.suite.engine import Engine
from bench.suite.workload import Workload
from warehouse.rows.measurement_results import usd_per_mtok
from warehouse.rows.units import MS_PER_S
from warehouse.schema.row import Row


def speculation_asked(engine: Engine) -> Row:
    """The columns of the speculative decoding that the engine's flags ask for."""
    asked = speculation_of(engine.flags)
    if asked is None:
        return {}
    return {
        "is_speculative": True,
        "spec_method": asked.method,
        "spec_tokens_max": asked.tokens_max,
        "spec_draft_model": asked.draft_model,
    }


def kv_offload_asked(engine: Engine) -> Row:
    """The columns of the tier behind the KV cache that the engine's flags ask for; empty without one."""
    asked = kv_offload_of(engine.flags)
    return {} if asked is None else {"kv_offload_backend": asked.backend, "kv_offload_gib": asked.gib}


def kv_offload(record: RunRecord, deltas: Mapping[str, float] | None) -> Row:
    """The columns of what the counters show of the tier; empty without one."""
    if kv_offload_of(record.asked.engine.flags) is None:
        return {}
    tier = kv_tier_of(deltas)
    counts = (tier.looked_up, tier.hits, tier.loaded_bytes, tier.stored_bytes)
    names = ("queries", "hits", "load_bytes", "store_bytes")
    whole = {f"server_kv_tier_{name}": None if n is None else int(n) for name, n in zip(names, counts, strict=True)}
    return {**whole, "kv_tier_hit_share": tier.hit_share}


def disaggregated_asked(engine: Engine) -> Row:
    """The columns of prefill and decode on servers of their own; empty of an engine that is one server."""
    asked = engine.disaggregated
    if asked is None:
        return {}
    flags = {"prefill_flags": list(asked.prefill_flags), "decode_flags": list(asked.decode_flags)}
    return {"kv_connector": asked.connector, **flags}


def disaggregated(record: RunRecord, report: LoadReport, deltas: Mapping[str, float] | None) -> Row:
    """The columns of what router and servers counted of it; empty of an engine that is one server."""
    found = kv_transfer_of(deltas)
    if found is None:
        return {}
    times = {"prefill": found.prefill_s, "handover": found.handover_s, "kv_transfer": found.transfer_s}
    counts = {
        "kv_transfer_bytes": found.transferred_bytes,
        "server_kv_received_tokens": found.received_tokens,
        "server_prefill_prompt_tokens": found.prefill_prompt_tokens,
    }
    return {
        **{f"{name}_mean_ms": None if time_s is None else time_s * MS_PER_S for name, time_s in times.items()},
        **{name: None if count is None else int(count) for name, count in counts.items()},
        "kv_computed_again_share": kv_computed_again_share(record, report, deltas),
    }


def answers_asked(work: Workload) -> Row:
    """The columns of embeddings, of the adapters that the suite asks for, and of the form of each answer."""
    form = work.answers
    if work.is_embedding:
        return {"task": work.task}
    asked: Row = {"adapters": list(work.adapters), "adapter_zipf": work.adapter_zipf} if work.adapters else {}
    return asked if form is None else asked | {"answer_form": form.kind, "valid_share_min": form.valid_share_min}


def numbers_of_kinds(record: RunRecord, report: LoadReport, deltas: Mapping[str, float] | None) -> Row:
    """The columns of all kinds of workload that the run has."""
    found = speculation(deltas) | repetition(record, report) | answer_validity(record, report)
    found |= cancels(record, report, deltas) | adapters(record, report) | images(record, report, deltas)
    found |= embeddings(record, report) | kv_offload(record, deltas)
    return found | disaggregated(record, report, deltas)


def embeddings(record: RunRecord, report: LoadReport) -> Row:
    """The columns of embeddings; empty for other loads."""
    requests = report.requests
    if report.dimensions is None:
        return {}
    read = requests.input_tokens[requests.is_ok]
    rate = None if (read < 0).any() else ratio(float(read.sum()), requests.window_s)
    price = usd_per_mtok(record.usd_per_hour, rate)
    return {"embedding_dimensions": report.dimensions, "input_throughput_tok_per_s": rate, "usd_per_mtok_input": price}


def adapters(record: RunRecord, report: LoadReport) -> Row:
    """The columns of a load on several adapters; empty for other loads."""
    names = Counter(name for name in report.models if name is not None)
    if not record.asked.workload.adapters or not names:
        return {}
    alike = record.adapters_like_base
    return {
        "adapters_used": len(names),
        "adapter_top_share": names.most_common(1)[0][1] / names.total(),
        "adapters_like_base": None if alike is None else list(alike),
    }


def images(record: RunRecord, report: LoadReport, deltas: Mapping[str, float] | None) -> Row:
    """The columns of prompts with images; empty for other prompts."""
    found = images_of(record, report, deltas)
    if found is None:
        return {}
    read = None if found.read is None else int(found.read)
    return {"images_sent": found.sent, "server_images_read": read, "image_cache_hit_share": found.cache_hit_share}


def cancels(record: RunRecord, report: LoadReport, deltas: Mapping[str, float] | None) -> Row:
    """The columns of requests that the client cancelled; empty where the suite cancels none."""
    found = cancelled_of(record, report)
    if found is None:
        return {}
    return {"cancelled": found.count, "cancel_overrun_share": overrun_share(record, report, deltas)}


def answer_validity(record: RunRecord, report: LoadReport) -> Row:
    """The columns of answers that must have a form; empty where none is demanded."""
    if record.asked.workload.answers is None:
        return {}
    first_ms = None if report.first_use_s is None else report.first_use_s * MS_PER_S
    return {"valid_answer_share": report.valid_share, "first_use_ttft_ms": first_ms}


def repetition(record: RunRecord, report: LoadReport) -> Row:
    """The columns of a prompt that is sent again and again among distinct ones; empty for other prompts."""
    found = repetition_of(record, report)
    if found is None:
        return {}
    return {
        "repeated_e2el_p50_ms": found.repeated.e2el_s * MS_PER_S,
        "distinct_e2el_p50_ms": found.distinct.e2el_s * MS_PER_S,
        "repeated_ttft_share": found.ttft_share,
        "repeated_generation_share": found.generation_share,
    }


def speculation(deltas: Mapping[str, float] | None) -> Row:
    """The columns of what the server's counters show of its drafts; empty where it made none."""
    found = acceptance_of(deltas)
    if found is None or not found.drafts:
        return {}
    return {
        "is_speculative": True,
        "spec_acceptance_length": found.length,
        "spec_acceptance_rate": found.rate,
        **{f"spec_acceptance_{place}": found.rate_at(place - 1) for place in range(1, POSITIONS + 1)},
        "server_spec_drafts": int(found.drafts),
        "server_spec_draft_tokens": int(found.proposed),
        "server_spec_accepted_tokens": int(found.accepted),
    }
