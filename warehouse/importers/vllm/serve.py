"""Results of `vllm bench serve`, of its older and newer clients and the Rust one: JSON, or JSON lines when appended.

Keys with `_ms` are milliseconds, arrays are seconds. Metadata from the command line is mixed with the results; only
unambiguous keys are read.
"""

import math
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, get_args, get_type_hints

import numpy as np

from bench.audit.claim import Claim, ClaimedConfig, ClaimedTotals, Pair, RequestSeries
from bench.audit.context_keys import field_of
from bench.metrics import Bools, Floats
from warehouse.importers.format import Format
from warehouse.importers.parsing.arrays import Lengths, read_gaps
from warehouse.importers.parsing.document import Document
from warehouse.importers.parsing.error_text import error_texts
from warehouse.importers.parsing.fields import Fields
from warehouse.importers.parsing.latencies import read_latencies
from warehouse.importers.parsing.timestamps import epoch_s

ALWAYS = ("num_prompts", "duration", "completed", "request_throughput")
# The clients of vLLM and SGLang name the form of the requests behind the engine.
_ENGINES = {
    **dict.fromkeys(("vllm", "vllm-chat"), "vllm"),
    **dict.fromkeys(("sglang", "sglang-native", "sglang-oai", "sglang-oai-chat", "sglang-embedding"), "sglang"),
    "tgi": "tgi",
    "tensorrt-llm": "tensorrt-llm",
}
_STAMP = re.compile(r"(?<!\d)\d{8}-\d{6}(?!\d)")
REQUIRED = frozenset({"incomplete", "zero_output", "failed_not_zero", "derived_mismatch"})
REQUIRED_OF_DETAILED = frozenset({"sum_mismatch", "stat_mismatch", "percentile_order"})


def _recognises(document: Document) -> bool:
    return not document.is_json_list and all(name in document.first_object for name in ALWAYS)


def _read(document: Document, this: Format) -> Iterator[Claim]:
    for place, values in document.objects:
        yield serve_claim(Fields(values, f"{document.name} {place}".rstrip()), document, this, place)


def serve_claim(
    fields: Fields,
    document: Document,
    this: Format,
    place: str,
    *,
    tool: str | None = None,
    unsuffixed_s: float | None = None,
) -> Claim:
    """One result of the client, or of a derived client (`tool`), as a claim.

    `unsuffixed_s`: the unit of latencies without a suffix.
    """
    said = _said(fields)
    series = read_series(fields)
    is_rust = "steady_state" in fields or "failed_requests" in fields
    tool = tool or ("vllm-rs bench serve" if is_rust else "vllm bench serve")
    # Texts of answers are large and not needed.
    fields.raw("generated_texts")
    asked = _asked(fields)
    asked = asked.filled_from(read_metadata(fields))
    pairs = tuple(_dates(fields, document))
    has_gaps = said.total_output_tokens != said.completed
    latency_s = read_latencies(fields, unsuffixed_s=unsuffixed_s, has_gaps=has_gaps)
    return Claim(
        lineage=this.lineage(document, place, tool),
        asked=asked,
        said=said,
        latency_s=latency_s,
        series=series,
        pairs=pairs,
        label=_label(asked),
        remarks=tuple(fields.remarks),
        unread=fields.unread(),
        required=this.required | (REQUIRED_OF_DETAILED if series else frozenset()),
    )


def _asked(fields: Fields) -> ClaimedConfig:
    rate = fields.raw("request_rate")
    per_s = None if isinstance(rate, float) and math.isinf(rate) else fields.positive("request_rate")
    return ClaimedConfig(
        model=fields.text("model_id"),
        precision=fields.text("precision", "dtype"),
        gpu=fields.text("gpu"),
        gpu_count=fields.integer("gpu_count", "num_gpus"),
        tp_size=fields.integer("tensor_parallel_size", "tp"),
        pp_size=fields.integer("pipeline_parallel_size", "pp"),
        engine=_ENGINES.get(fields.text("backend") or ""),
        engine_version=fields.text("engine_version", "vllm_version"),
        max_model_len=fields.integer("max_model_len"),
        concurrency=fields.integer("max_concurrency"),
        request_rate_per_s=per_s,
        is_open_loop=per_s is not None or "ramp_up_strategy" in fields,
        request_count=fields.integer("num_prompts"),
        spec_tokens_per_step=fields.positive("spec_decode_acceptance_length"),
    )


def _said(fields: Fields) -> ClaimedTotals:
    failed = fields.integer("failed")
    named = fields.raw("failed_requests")
    if failed is None and isinstance(named, list):
        failed = len(named)
    return ClaimedTotals(
        completed=fields.integer("completed"),
        failed=failed,
        duration_s=fields.positive("duration"),
        started_at_s=fields.positive("benchmark_start_time_unix"),
        ended_at_s=fields.positive("benchmark_end_time_unix") or epoch_s(fields.text("date")),
        total_input_tokens=fields.integer("total_input_tokens"),
        total_output_tokens=fields.integer("total_output_tokens"),
        request_throughput_per_s=fields.positive("request_throughput"),
        input_throughput_tok_per_s=fields.positive("input_throughput"),
        output_throughput_tok_per_s=fields.positive("output_throughput"),
        total_throughput_tok_per_s=fields.positive("total_token_throughput"),
        peak_output_tok_per_s=fields.positive("max_output_tokens_per_s"),
        goodput_per_s=fields.number("request_goodput", "request_goodput:"),
        good_count=fields.integer("good_completed"),
    )


def _dates(fields: Fields, document: Document) -> Iterator[Pair]:
    """The moment in the file's name beside the one in it: the client writes one for both, in its local time."""
    named, written = _STAMP.search(document.path.name), fields.text("date")
    if named is not None and written is not None:
        yield Pair("timestamp", named[0], written, "file name / date")


def read_series(fields: Fields) -> RequestSeries | None:
    """The per-request arrays of a detailed result, None without any; an array of another length is ignored."""
    is_ok = _is_ok(fields)
    input_tokens, output_tokens = fields.counts("input_lens"), fields.counts("output_lens")
    start_s, ttft_s, e2el_s = (fields.numbers(name) for name in ("start_times", "ttfts", "latencies"))
    gap_s, gap_at = read_gaps(fields, "itls")
    first = next((each for each in (output_tokens, ttft_s, input_tokens, e2el_s) if each is not None), None)
    if first is None or not len(first):
        return None
    lengths = Lengths(fields, len(first))
    gap_at = gap_at if lengths.fitting("itls", None if gap_at is None else gap_at[1:]) is not None else None
    is_ok = lengths.fitting("errors", is_ok)
    return RequestSeries(
        input_tokens=lengths.fitting("input_lens", input_tokens),
        output_tokens=lengths.fitting("output_lens", output_tokens),
        is_ok=is_ok,
        start_s=lengths.fitting("start_times", start_s),
        ttft_s=_of_the_good(lengths.fitting("ttfts", ttft_s), is_ok),
        e2el_s=_of_the_good(lengths.fitting("latencies", e2el_s), is_ok),
        gap_s=None if gap_at is None else gap_s,
        gap_at=gap_at,
        error=None if is_ok is None else error_texts(fields.raw("errors")),
    )


def _is_ok(fields: Fields) -> Bools | None:
    """Which requests have no error; None if unknown."""
    errors = fields.raw("errors")
    if errors is None or not isinstance(errors, list):
        return None
    return np.fromiter((not each for each in errors), dtype=np.bool_, count=len(errors))


def _of_the_good(times: Floats | None, is_ok: Bools | None) -> Floats | None:
    """The times, NaN for a failed request: the client writes 0 there."""
    return times if times is None or is_ok is None else np.where(is_ok, times, np.nan)


def _label(asked: ClaimedConfig) -> str:
    load = [f"concurrency {asked.concurrency}"] if asked.concurrency is not None else []
    rate = [f"{asked.request_rate_per_s:g} requests/s"] if asked.request_rate_per_s is not None else []
    return ", ".join([asked.model or "unnamed model", *load, *rate])


FORMAT = Format("vllm-serve", 3, _recognises, _read, REQUIRED)


_READERS: dict[type, Callable[[Fields, str], Any]] = {
    bool: Fields.flag,
    int: Fields.integer,
    float: Fields.number,
    str: Fields.text,
}


def read_metadata(fields: Fields) -> ClaimedConfig:
    """The configuration in the keys that `--metadata` added; a value of another type is ignored with a remark."""
    found: dict[str, Any] = {}
    for name in fields.names():
        key = field_of(name, None)
        if key is None or key[0] in found:
            continue
        read = _reader_of(key[0])
        field, value = field_of(name, None if read is None else read(fields, name)) or key
        if value is not None:
            found[field] = value
    return ClaimedConfig(**found)


@cache
def _reader_of(field: str) -> Callable[[Fields, str], Any] | None:
    """How a value of this field is read; None of one that has a few words only."""
    kinds = get_args(get_type_hints(ClaimedConfig)[field])
    return next((read for kind, read in _READERS.items() if kind in kinds), None)
