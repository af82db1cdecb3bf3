"""inference-perf: the client's file of a stage, and the server's Prometheus file beside it; all in seconds.

Its `time_per_output_token` averages the gaps between chunks. Its `normalized_time_per_output_token` is E2EL over tokens
and is not loaded.
"""

from collections.abc import Iterator

from bench.audit.claim import Claim, ClaimedConfig, ClaimedTotals, Metric, ServerCounters
from bench.errors import UnreadableResultError
from warehouse.importers.format import Format
from warehouse.importers.parsing.distribution import positive_spread, spread, without_empty
from warehouse.importers.parsing.document import Document, read_document
from warehouse.importers.parsing.tree import Tree

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
    """The one claim of a stage: the client's with the server's file, or the server's alone."""
    one = Tree(document.json, document.name)
    if _is_server(document.json["successes"]):
        yield _of_server(document, form, one)
        return
    load = one.part("load_summary")
    rate = load.amount("requested_rate") or None  # 0 where a number of users drove the load
    concurrency = load.count("concurrency", "concurrency_level")
    asked = ClaimedConfig(
        request_rate_per_s=rate,
        is_open_loop=None if rate is None and concurrency is None else rate is not None,
        concurrency=concurrency,
        request_count=load.count("count"),
    )
    said, latency_s = _said(one), _latency(one.part("successes").part("latency"))
    server, beside = _beside(document)
    yield Claim(
        lineage=form.lineage(document, "", "inference-perf"),
        asked=asked,
        said=said,
        latency_s=latency_s,
        server=server,
        remarks=(*one.all_remarks(), *(beside.all_remarks() if beside else ())),
        label="" if rate is None else f"{rate:g} requests/s",
        unread={**one.all_unread(), **({} if beside is None else _under("server.", beside.all_unread()))},
        required=form.required,
    )


def _said(one: Tree) -> ClaimedTotals:
    good, load = one.part("successes"), one.part("load_summary")
    completed = good.count("count")
    rates = good.part("throughput")
    rate = rates.positive if completed else rates.amount
    return ClaimedTotals(
        completed=completed,
        failed=one.part("failures").count("count"),
        total_input_tokens=_total(good, completed, ("prompt_tokens", "prompt_len")),
        total_output_tokens=_total(good, completed, ("output_tokens", "output_len")),
        request_throughput_per_s=rate("requests_per_sec") or None,
        input_throughput_tok_per_s=rate("input_tokens_per_sec") or None,
        output_throughput_tok_per_s=rate("output_tokens_per_sec") or None,
        total_throughput_tok_per_s=rate("total_tokens_per_sec") or None,
        request_rate_sent_per_s=load.amount("achieved_rate"),
        has_trimmed_rates=True,
        send_delay_p99_s=load.part("schedule_delay").amount("p99"),
    )


def _total(good: Tree, completed: int | None, names: tuple[str, ...]) -> int | None:
    """Tokens of all answers: as stated, or the mean times the number of answers."""
    part = next((good.part(name) for name in names if name in good), None)
    if part is None:
        return None
    stated, mean = part.count("total"), part.amount("mean")
    if stated is not None or mean is None or completed is None:
        return stated
    return round(mean * completed)


def _latency(latency: Tree) -> dict[Metric, dict[str, float]]:
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


FORMAT = Format("inference-perf", 2, recognises, read, frozenset({"failure_rate", "zero_output", "percentile_order"}))
