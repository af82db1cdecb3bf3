"""What a measured run gave: latencies, throughput, their intervals, counters of the server, and its answers."""

from collections.abc import Mapping

import numpy as np

from bench import bootstrap, metrics
from bench.audit.reconcile import planned_hits
from bench.engines.by_name import FINISH_REASONS
from bench.histogram import FIRST_TOKEN_BINS, GAP_BINS, histogram
from bench.loadgen.report import LoadReport
from bench.loadgen.server_view import Scrapes, blind_live, live_view, ttft_over_server_s
from bench.metrics import P99_MIN_SAMPLES, PERCENTILE_ESTIMATOR, Requests, percentile_name
from bench.quality.answers import fingerprint, quality_id
from bench.record import Answers, RunRecord
from bench.steady import slope
from bench.suite.slo import Slo
from warehouse.rows.units import MS_PER_S, S_PER_HOUR, TOKENS_PER_MTOK
from warehouse.schema.row import Row

NOT_ASKED = ("quality_not_checked", "quality_not_compared", "greedy_not_compared")
NOT_ASKED_AGAIN = "the server did not answer the questions after its last load: it had ended, or the night ended early"


def measured(report: LoadReport, deltas: Mapping[str, float] | None, usd_per_hour: float | None) -> Row:
    """The columns of the load driver's and the server's counts, and of latencies and throughput."""
    requests = report.requests
    good = requests.is_ok
    window_s = requests.window_s
    throughput = metrics.output_throughput_tok_per_s(requests)
    return {
        "completed": int(good.sum()),
        "failed": int((~good & ~requests.is_cancelled).sum()),
        "duration_s": None if np.isnan(window_s) else window_s,
        "total_input_tokens": _total(requests.input_tokens[good]),
        "total_output_tokens": _total(requests.output_tokens[good]),
        "request_throughput_per_s": metrics.request_throughput_per_s(requests),
        "output_throughput_tok_per_s": throughput,
        "concurrency_achieved": metrics.concurrency_achieved(requests),
        "tokens_per_event": metrics.tokens_per_event(requests),
        **_latencies(requests),
        **_histograms(requests),
        **_counted_by_server(deltas),
        "planned_prefix_cache_hits": _whole(planned_hits(report)),
        "client_lag_p99_ms": _milliseconds(report.lag_p99_s),
        "kernel_stamp_share": report.kernel_stamp_share,
        "client_hosts": report.client_hosts,
        "client_clock_error_ms": _milliseconds(report.clock_error_s),
        "usd_per_mtok_output": usd_per_mtok(usd_per_hour, throughput),
    }


def listed_cost(record: RunRecord, report: LoadReport) -> Row:
    """What a million output tokens cost at an endpoint's listed prices, with the input tokens that they needed."""
    known = None if record.endpoint is None else record.endpoint.known
    requests = report.requests
    good = requests.is_ok & (requests.output_tokens > 0) & (requests.input_tokens >= 0)
    output = int(requests.output_tokens[good].sum())
    if known is None or known.usd_per_mtok_input is None or known.usd_per_mtok_output is None or not output:
        return {}
    share = int(requests.input_tokens[good].sum()) / output
    return {"usd_per_mtok_output": known.usd_per_mtok_output + known.usd_per_mtok_input * share}


def usd_per_mtok(usd_per_hour: float | None, tok_per_s: float | None) -> float | None:
    """The price of a million tokens at this throughput."""
    if usd_per_hour is None or not tok_per_s:
        return None
    return usd_per_hour / S_PER_HOUR / tok_per_s * TOKENS_PER_MTOK


def _total(tokens: metrics.Ints) -> int | None:
    """The sum of the counts; None if one is unknown."""
    return None if (tokens < 0).any() or not len(tokens) else int(tokens.sum())


def _counted_by_server(deltas: Mapping[str, float] | None) -> Row:
    moved = {
        "server_generation_tokens": "generation_tokens_total",
        "server_prompt_tokens": "prompt_tokens_total",
        "server_preemptions": "num_preemptions_total",
        "server_prefix_cache_queries": "prefix_cache_queries_total",
        "server_prefix_cache_hits": "prefix_cache_hits_total",
        **{f"server_finished_{why}": f"request_success_total.{why}" for why in FINISH_REASONS},
    }
    return {column: _moved(deltas, name) for column, name in moved.items()}


def _moved(deltas: Mapping[str, float] | None, name: str) -> int | None:
    return None if deltas is None or name not in deltas else int(deltas[name])


def _whole(count: float | None) -> int | None:
    return None if count is None else int(count)


def _milliseconds(seconds: float | None) -> float | None:
    """The same length of time in ms."""
    return None if seconds is None else seconds * MS_PER_S


def _latencies(requests: Requests) -> Row:
    samples = int(requests.is_ok.sum())
    row: Row = {"percentile_estimator": PERCENTILE_ESTIMATOR}
    of_array: dict[int, Row] = {}  # where each event holds one token, `itl` and `itl_event` are the same array
    for metric, times in requests.latencies_s.items():
        if id(times) not in of_array:
            of_array[id(times)] = statistics(times, samples)
        row |= {f"{metric}_{name}": value for name, value in of_array[id(times)].items()}
    return row


def _histograms(requests: Requests) -> Row:
    """The histograms of what was measured; None where nothing was."""
    first = metrics.known(requests.ttft_s[requests.is_ok])
    times = {"ttft": (first, FIRST_TOKEN_BINS), "itl_event": (requests.ok_gap_s, GAP_BINS)}
    return {f"{name}_histogram": histogram(*one).tolist() if len(one[0]) else None for name, one in times.items()}


def statistics(times_s: metrics.Floats, samples: int) -> Row:
    """Mean, count and percentiles of one latency, by the end of their column's name."""
    percentiles = metrics.percentiles_s(times_s, samples)
    return {
        "mean_ms": _milliseconds(metrics.mean_s(times_s)),
        "sample_count": len(metrics.known(times_s)),
        **{f"{percentile_name(q)}_ms": _milliseconds(value) for q, value in percentiles.items()},
    }


def goodput(requests: Requests, slo: Slo | None) -> Row:
    """The columns of the requests within the SLO; None without one."""
    is_within = None if slo is None else metrics.within_slo(requests, slo.bounds_ms)
    return {
        "within_slo_share": None if is_within is None else metrics.ratio(float(is_within.sum()), len(requests)),
        "goodput_per_s": None if is_within is None else metrics.goodput_per_s(requests, is_within),
        "goodput_tok_per_s": None if is_within is None else metrics.goodput_tok_per_s(requests, is_within),
    }


def steady_window(report: LoadReport) -> Row:
    """The columns of the steady window; None where there is none."""
    steady, windows = report.steady, report.windows or ()
    line = None if steady is None else slope(steady.part_tokens)
    embeds = report.dimensions is not None  # their parts count vectors
    return {
        "steady_begin_s": None if steady is None else steady.begin_s,
        "steady_duration_s": None if steady is None else steady.duration_s,
        "steady_output_throughput_tok_per_s": None if steady is None or embeds else steady.output_throughput_tok_per_s,
        "steady_slope_share": None if line is None else line.share,
        "steady_slope_se_share": None if line is None else line.standard_error,
        "live_mean": None if steady is None else steady.live_mean,
        **{f"{part}_count": None if steady is None else windows.count(part) for part in ("ramp", "steady", "drain")},
    }


def server_view(report: LoadReport, deltas: Mapping[str, float] | None, scrapes: Scrapes | None) -> Row:
    """The columns of what the server's own times and gauges show."""
    view = live_view(scrapes, report.steady)
    over_s = None if report.server_times is None else ttft_over_server_s(report.requests, report.server_times)
    return {
        "server_live_mean": None if view is None else view.mean,
        "server_live_se": None if view is None else view.standard_error,
        "server_live_sample_count": None if view is None else view.count,
        "server_blind_live": blind_live(report.requests, deltas or {}),
        "scrape_took_p50_ms": _milliseconds(None if scrapes is None else scrapes.took_p50_s),
        "ttft_over_server_p50_ms": _milliseconds(
            None if over_s is None else metrics.percentile_s(over_s, 50, len(over_s))
        ),
        "dispatch_delay_p99_ms": _milliseconds(report.dispatch_delay_p99_s),
        "slot_refill_p99_ms": _milliseconds(report.slot_refill_p99_s),
    }


def intervals(report: LoadReport, row: Row) -> Row:
    """95 % intervals of tail latency and throughput; None where the number itself is None."""
    requests = report.requests
    good = np.flatnonzero(requests.is_ok)
    ends: dict[str, bootstrap.Interval | None] = dict.fromkeys(("ttft_p99", "itl_p99"))
    if len(good) >= P99_MIN_SAMPLES:
        of_gap = np.repeat(np.arange(len(good)), requests.gap_count[good])
        of_token = np.repeat(of_gap, requests.ok_gap_tokens) if len(requests.itl_s) else of_gap[:0]
        if row["ttft_p99_ms"] is not None:
            ends["ttft_p99"] = bootstrap.tail_interval(requests.ttft_s[good] * MS_PER_S, np.arange(len(good)), 99)
        ends["itl_p99"] = bootstrap.tail_interval(requests.itl_s * MS_PER_S, of_token, 99)
    found: Row = {f"{name}_{end}_ms": _end(ends[name], end) for name in ends for end in ("low", "high")}
    # In a closed loop throughput is tokens over request time; in an open loop it is the offered load.
    shares = None
    if row["arrivals"] == "closed" and row["output_throughput_tok_per_s"] is not None:
        shares = bootstrap.ratio_interval(requests.output_tokens[good].astype(np.float64), requests.e2el_s[good])
    for end in ("low", "high"):
        share = _end(shares, end)
        known = None if share is None else share * row["output_throughput_tok_per_s"]
        found[f"output_throughput_{end}_tok_per_s"] = known
    return found


def _end(interval: bootstrap.Interval | None, end: str) -> float | None:
    return None if interval is None else interval[("low", "high").index(end)]


def answers(record: RunRecord) -> Row:
    """The server's answers to the fixed questions; judging/answer_history.py compares them with earlier nights."""
    asked = record.accuracy
    if record.asked.workload.is_embedding:
        return dict.fromkeys(NOT_ASKED, "a server of embeddings answers no questions")
    if asked is None:
        never = "measured before servers answered the fixed questions"
        return dict.fromkeys(NOT_ASKED, never)
    before, after = asked.before, asked.after or Answers()
    return {
        "quality_id": quality_id(record),
        "logprob_passage": asked.passage,
        "logprob_token_count": before.logprob_tokens,
        "logprob_mean_before": before.logprob_mean,
        "logprob_mean_after": after.logprob_mean,
        "greedy_fingerprint_before": fingerprint(before.greedy),
        "greedy_fingerprint_after": fingerprint(after.greedy),
        "greedy_tokens": [token for tokens in before.greedy for token in tokens] or None,
        "quality_not_checked": before.lacking or (NOT_ASKED_AGAIN if asked.after is None else after.lacking),
        **dict.fromkeys(("quality_not_compared", "greedy_not_compared"), "no earlier night was compared"),
    }
