"""inference-perf: the client's file of a stage, with what lies beside it; all in seconds.

Beside it may be the configuration, the file of all requests and the server's Prometheus file. Its
`time_per_output_token` averages the gaps between chunks. Its `normalized_time_per_output_token` is E2EL over tokens
and is not loaded.
"""

import math
from collections.abc import Iterator

from bench.audit.claim import Claim, ClaimedConfig, ClaimedTotals, Metric, ServerCounters
from bench.errors import ToldBesideError, UnreadableResultError
from bench.metrics import ratio
from warehouse.importers.format import Format
from warehouse.importers.inference_perf.asked import asked_of, counts_by_server
from warehouse.importers.inference_perf.requests import requests_beside
from warehouse.importers.inference_perf.run import SUMMARY, config_beside, prefix_of, stage_of, stages_beside
from warehouse.importers.parsing.distribution import positive_spread, spread, without_empty
from warehouse.importers.parsing.document import Document, read_document
from warehouse.importers.parsing.tree import Tree

NEAR = 0.1  # a mean of means of requests to the mean of all gaps
SEVERAL = 1.5  # tokens an event
Latencies = dict[Metric, dict[str, float]]
CLIENT, SERVER = "lifecycle_metrics", "prometheus_metrics"
LATENCIES: dict[Metric, str] = {
    "ttft": "time_to_first_token",
    "tpot": "time_per_output_token",
    "itl": "inter_token_latency",
}


def recognises(document: Document) -> bool:
    """Whether it has a stage's successes and failures, or the server's counts of successes."""
    if not document.has_keys("successes") or not isinstance(successes := document.json["successes"], dict):
        return False
    return "failures" in document.json or "load_summary" in document.json or _is_server(successes)


def _is_server(successes: dict[str, object]) -> bool:
    return "latency" not in successes and "rate" in successes and "count" in successes


def read(document: Document, form: Format) -> Iterator[Claim]:
    """The one claim of a stage: the client's with the files beside it, or the server's alone.

    Raises ToldBesideError for a summary beside the stages that it sums up.
    """
    one = Tree(document.json, document.name)
    if _is_server(document.json["successes"]):
        yield _of_server(document, form, one)
        return
    summed_up = prefix_of(document, SUMMARY)
    if summed_up is not None and (stages := list(stages_beside(document, summed_up))):
        raise ToldBesideError(f"{document.name} sums up {' and '.join(stages)} beside it")
    yield _of_client(document, form, one)


def _of_client(document: Document, form: Format, one: Tree) -> Claim:
    prefix, stage = stage_of(document.path.name) or (prefix_of(document, SUMMARY) or "", None)
    config, odd = config_beside(document, prefix)
    load = one.part("load_summary")
    asked = asked_of(load, config, stage)
    by_server = _is_by_server(one, counts_by_server(config))
    said, latency_s = _said(one, asked, by_server=by_server), _latency(one.part("successes").part("latency"))
    server, beside = _beside(document)
    series, unread = (None, ()) if stage is None else requests_beside(document, prefix, stage, by_server=by_server)
    return Claim(
        lineage=form.lineage(document, "", "inference-perf"),
        asked=asked,
        said=said,
        latency_s=_without_gaps_as_tpot(latency_s, said),
        series=series,
        server=server,
        remarks=(*one.all_remarks(), *odd, *unread, *config.all_remarks(), *(beside.all_remarks() if beside else ())),
        label=_label(asked),
        unread={**one.all_unread(), **({} if beside is None else _under("server.", beside.all_unread()))},
        required=form.required | ({"stat_mismatch"} if series is not None else frozenset()),
    )


def _without_gaps_as_tpot(latency_s: Latencies, said: ClaimedTotals) -> Latencies:
    """The latencies without TPOT where events hold several tokens: it is then the gap between events."""
    means = {metric: statistics.get("mean") for metric, statistics in latency_s.items()}
    ttft, e2el, tpot, itl = (means.get(metric) for metric in ("ttft", "e2el", "tpot", "itl"))
    tokens = ratio(said.total_output_tokens, said.completed)
    if ttft is None or e2el is None or tpot is None or itl is None or tokens is None or tokens <= 1:
        return latency_s
    is_gap = abs(tpot - itl) <= NEAR * itl
    if not is_gap or tpot <= SEVERAL * (e2el - ttft) / (tokens - 1):
        return latency_s
    return {metric: statistics for metric, statistics in latency_s.items() if metric != "tpot"}


def _label(asked: ClaimedConfig) -> str:
    if asked.request_rate_per_s is not None:
        return f"{asked.request_rate_per_s:g} requests/s"
    return f"concurrency {asked.concurrency}" if asked.concurrency is not None else ""


def _is_by_server(one: Tree, configured: bool | None) -> bool:
    """Whether rates and TPOT count the server's tokens: as configured, else by which count the rate is of."""
    good = one.part("successes")
    completed = good.count("count")
    own, theirs = (_total(good, completed, (name,)) for name in ("output_len", "output_tokens"))
    rate = good.part("throughput").amount("output_tokens_per_sec")
    span = one.amount("benchmark_time_seconds")
    if configured is not None or own is None or theirs is None or rate is None or span is None:
        return configured is not False
    return abs(theirs - rate * span) <= abs(own - rate * span)


def _said(one: Tree, asked: ClaimedConfig, *, by_server: bool) -> ClaimedTotals:
    good, load = one.part("successes"), one.part("load_summary")
    completed, duration_s = good.count("count"), one.positive("benchmark_time_seconds")
    rates = good.part("throughput")
    rate = rates.positive if completed else rates.amount
    counted = ("output_tokens", "output_len") if by_server else ("output_len", "output_tokens")
    return ClaimedTotals(
        completed=completed,
        failed=one.part("failures").count("count"),
        duration_s=duration_s,
        total_input_tokens=_total(good, completed, ("prompt_tokens", "prompt_len")),
        total_output_tokens=_total(good, completed, counted),
        usage_output_tokens=_total(good, completed, ("output_tokens",)) if not by_server else None,
        without_usage=_without_usage(good, completed),
        request_throughput_per_s=rate("requests_per_sec") or None,
        input_throughput_tok_per_s=rate("input_tokens_per_sec") or None,
        output_throughput_tok_per_s=rate("output_tokens_per_sec") or None,
        total_throughput_tok_per_s=rate("total_tokens_per_sec") or None,
        request_rate_sent_per_s=load.amount("achieved_rate"),
        has_trimmed_rates=duration_s is None,
        # A closed loop has no schedule that it could be late for.
        send_delay_p99_s=None if asked.is_open_loop is False else load.part("schedule_delay").amount("p99"),
    )


def _without_usage(good: Tree, completed: int | None) -> int | None:
    """Answers whose tokens the client counted since they had no usage; None where no answer had one."""
    fallback = good.part("client_fallback_requests")
    counts = [count for side in ("prompt", "output") if (count := fallback.count(side)) is not None]
    return max(counts) if counts and max(counts) != completed else None


def _total(good: Tree, completed: int | None, names: tuple[str, ...]) -> int | None:
    """Tokens of all answers: as stated, or the mean times the number of answers."""
    part = next((good.part(name) for name in names if name in good), None)
    if part is None:
        return None
    stated, mean = part.count("total"), part.amount("mean")
    if stated is not None or mean is None or completed is None:
        return stated
    total = mean * completed
    return round(total) if math.isfinite(total) else None


def _latency(latency: Tree) -> Latencies:
    found = {metric: spread(latency.part(name)) for metric, name in LATENCIES.items()}
    return without_empty({"e2el": positive_spread(latency.part("request_latency")), **found})


def _beside(document: Document) -> tuple[ServerCounters | None, Tree | None]:
    """The server's file of the same stage; empty if it is missing or unreadable."""
    name = document.path.name.replace(CLIENT, SERVER)
    data = document.sibling(name) if name != document.path.name else None
    if data is None:
        return None, None
    try:
        value = read_document(name, data).json
    except UnreadableResultError as error:
        broken = Tree({}, name)
        broken.remark("unreadable_value", f"ignored: {error}")
        return None, broken
    tree = Tree(value if isinstance(value, dict) else {}, name)
    return _server(tree), tree


def _server(one: Tree) -> ServerCounters:
    good = one.part("successes")
    count = good.amount("count")
    prompt, output = good.part("prompt_len").amount("mean"), good.part("output_len").amount("mean")
    prompt_tokens = None if count is None or prompt is None else count * prompt
    hit_percent = _told(good, "prefix_cache_hit_percent")
    return ServerCounters(
        requests=count,
        prompt_tokens=prompt_tokens,
        # The percentage is hits over queries, and the cache is queried for every token of a prompt.
        prefix_queries=None if hit_percent is None else prompt_tokens,
        prefix_hits=None if prompt_tokens is None or hit_percent is None else prompt_tokens * hit_percent / 100,
        generated_tokens=None if count is None or output is None else count * output,
        preemptions=_told(good, "num_preemptions_total"),
        ttft_mean_s=good.part("time_to_first_token").amount("mean") or None,
        tpot_mean_s=good.part("time_per_output_token").amount("mean") or None,
    )


def _told(good: Tree, name: str) -> float | None:
    """A plain number, or the mean that later releases write."""
    return good.part(name).amount("mean") if isinstance(good.raw(name), dict) else good.amount(name)


def _of_server(document: Document, form: Format, one: Tree) -> Claim:
    of = document.path.name.replace(SERVER, CLIENT)
    has_client = of != document.path.name and of in document.siblings
    return Claim(
        lineage=form.lineage(document, f"the server's side of {of}" if has_client else "", "inference-perf"),
        server=_server(one),
        remarks=one.all_remarks(),
        label=f"server of {of}" if has_client else "server",
        unread=one.all_unread(),
        required=form.required,
    )


def _under(prefix: str, unread: dict[str, object]) -> dict[str, object]:
    return {f"{prefix}{name}": value for name, value in unread.items()}


FORMAT = Format("inference-perf", 3, recognises, read, frozenset({"failure_rate", "zero_output", "percentile_order"}))
