"""The columns of `measurements` that hold measured values; NULL in the row of a run that was not measured."""

from collections.abc import Iterator

from bench.engines.by_name import FINISH_REASONS
from bench.histogram import FIRST_TOKEN_BINS, GAP_BINS
from bench.metrics import PERCENTILE_MIN_SAMPLES, percentile_name
from warehouse.schema.column import Column
from warehouse.schema.session_columns import SESSION_COLUMNS

_METRICS = {
    "ttft": "time to first token: request sent to first token",
    "tpot": "mean time per output token after the first, per request",
    "itl": "inter-token latency, pooled over requests: a gap before k tokens counts k times with a k-th of its length",
    "itl_event": "gaps between consecutive token events, pooled over requests",
    "e2el": "end-to-end latency: request sent to last token",
}

STATISTICS = ("mean", *(percentile_name(q) for q in PERCENTILE_MIN_SAMPLES))


def _latencies() -> Iterator[Column]:
    for metric, meaning in _METRICS.items():
        for statistic in STATISTICS:
            yield Column(f"{metric}_{statistic}_ms", "number", f"{statistic} of {meaning}", "ms", low=0)
        yield Column(
            f"{metric}_sample_count", "integer", f"number of values behind the statistics of `{metric}`", low=0
        )


def _histograms() -> Iterator[Column]:
    for metric, bins in (("ttft", FIRST_TOKEN_BINS), ("itl_event", GAP_BINS)):
        said = f"how many values of `{metric}` are in each of {bins} bins; bin i, from 0, begins at 4000^(i/64) ms"
        yield Column(f"{metric}_histogram", "counts", said)


def _intervals() -> Iterator[Column]:
    for name, unit in (("ttft_p99", "ms"), ("itl_p99", "ms"), ("output_throughput", "tok_per_s")):
        for end in ("low", "high"):
            said = f"{end}er end of the 95 % bootstrap interval of `{name}_{unit}`, resampled by request"
            yield Column(f"{name}_{end}_{unit}", "number", said, unit.replace("_per_", "/"), low=0)


# Read by warehouse/judging/answer_history.py out of the nights before.
_ANSWERS = (
    Column("logprob_passage", "text", "version of the fixed passage and prompts that the server answered"),
    Column("logprob_token_count", "integer", "number of tokens of the passage that were scored", "tokens", low=1),
    *(
        Column(
            f"logprob_mean_{when}",
            "number",
            f"mean log-probability of the passage's tokens {place}",
            "nats",
            low=-1000,  # lower than any real value: the server reported none
            high=0,
        )
        for when, place in (("before", "before the server's first load"), ("after", "after the server's last load"))
    ),
    Column(
        "logprob_mean_earlier", "number", "median of that value over the earlier nights it was compared with", "nats"
    ),
    Column("earlier_night_count", "integer", "number of those earlier nights", low=0),
    Column(
        "greedy_fingerprint_before", "text", "hash of the greedy tokens of the fixed prompts, before the first load"
    ),
    Column("greedy_fingerprint_after", "text", "hash of the same tokens after the server's last load"),
    Column("greedy_tokens", "counts", "greedy token ids before the first load, concatenated over the prompts"),
    Column(
        "quality_id",
        "text",
        "hash of what determines the answers (weights, precision, flags); equal ids must give equal answers",
    ),
    Column(
        "quality_not_checked", "text", "reason why answers before the first and after the last load were not compared"
    ),
    Column("quality_not_compared", "text", "reason why the passage was not compared with earlier nights"),
    Column("greedy_not_compared", "text", "reason why the greedy tokens were not compared with an earlier night"),
    Column("lm_eval_worst", "text", "the score that fell most against earlier nights, with both values"),
    Column("lm_eval_lowest", "text", "the score that is lowest for its floor, with that floor"),
    Column("lm_eval_not_compared", "text", "reason why an lm-eval score was not compared with earlier nights"),
)

METRIC_COLUMNS = (
    Column("completed", "integer", "requests that completed", low=0),
    Column("failed", "integer", "requests that failed", low=0),
    Column("duration_s", "number", "time from the first send to the last token of completed requests", "s", low=0),
    Column("total_input_tokens", "integer", "prompt tokens of completed requests", "tokens", low=0),
    Column("total_output_tokens", "integer", "output tokens of completed requests", "tokens", low=0),
    Column("request_throughput_per_s", "number", "completed requests over the duration", "1/s", low=0),
    Column(
        "output_throughput_tok_per_s", "number", "output tokens of completed requests over the duration", "tok/s", low=0
    ),
    Column("concurrency_achieved", "number", "mean number of requests in flight, by Little's law", low=0),
    *_latencies(),
    *_histograms(),
    Column("percentile_estimator", "text", "estimator of all percentiles, see METHOD.md"),
    *_intervals(),
    Column("tokens_per_event", "number", "mean number of tokens per stream event", low=0),
    Column("within_slo_share", "number", "share of all requests within the SLO; NULL without one", low=0, high=1),
    Column("goodput_per_s", "number", "requests within the SLO over the duration", "1/s", low=0),
    Column("goodput_tok_per_s", "number", "output tokens of requests within the SLO over the duration", "tok/s", low=0),
    Column("steady_begin_s", "number", "start of the steady window on the client's clock; NULL without one", "s"),
    Column("steady_duration_s", "number", "length of the steady window", "s", low=0),
    Column(
        "steady_output_throughput_tok_per_s",
        "number",
        "output tokens that arrived in the steady window, over its length",
        "tok/s",
        low=0,
    ),
    Column(
        "steady_slope_share", "number", "change of throughput from start to end of the steady window, over its mean"
    ),
    Column("steady_slope_se_share", "number", "standard error of that change", low=0),
    Column("ramp_count", "integer", "requests sent before the steady window", low=0),
    Column("steady_count", "integer", "requests sent and finished inside the steady window", low=0),
    Column("drain_count", "integer", "requests sent in the steady window or later and finished after it", low=0),
    Column(
        "live_mean",
        "number",
        "mean number of requests in flight in the steady window, by the client's timestamps",
        low=0,
    ),
    Column(
        "server_live_mean",
        "number",
        "the same by the server: running plus waiting, mean of the samples in the steady window",
        low=0,
    ),
    Column("server_live_se", "number", "standard error of that mean", low=0),
    Column("server_live_sample_count", "integer", "number of samples behind that mean", low=0),
    Column(
        "server_blind_live", "number", "mean number of requests in flight that the server's gauges cannot show", low=0
    ),
    Column("scrape_took_p50_ms", "number", "median response time of the server's metrics endpoint", "ms", low=0),
    Column(
        "ttft_over_server_p50_ms", "number", "median of TTFT minus the server's own queue and first-token time", "ms"
    ),
    Column("dispatch_delay_p99_ms", "number", "p99 of the delay from due to sent (open loop)", "ms"),
    Column("slot_refill_p99_ms", "number", "p99 of the delay from a free slot to the next send (closed loop)", "ms"),
    # No bounds on counters: one that fell is judged by server_restarted.
    Column("server_generation_tokens", "integer", "increase of the server's output token counter", "tokens"),
    Column("server_prompt_tokens", "integer", "increase of the server's prompt token counter", "tokens"),
    Column("server_preemptions", "integer", "increase of the server's preemption counter"),
    *(
        Column(
            f"server_finished_{why}", "integer", f"increase of the server's counter of requests finished with `{why}`"
        )
        for why in FINISH_REASONS
    ),
    Column(
        "server_prefix_cache_queries",
        "integer",
        "prompt tokens that the server looked up in its prefix cache",
        "tokens",
    ),
    Column("server_prefix_cache_hits", "integer", "prompt tokens that the server found in its prefix cache", "tokens"),
    Column(
        "planned_prefix_cache_hits",
        "integer",
        "prompt tokens that the prompts were made to find in the prefix cache",
        "tokens",
        low=0,
    ),
    *SESSION_COLUMNS,
    Column(
        "client_lag_p99_ms", "number", "p99 of the delay from the kernel receiving data to the client reading it", "ms"
    ),
    Column("kernel_stamp_share", "number", "share of reads with a kernel timestamp", "share", low=0, high=1),
    Column("client_hosts", "integer", "client hosts that shared the load; NULL where one computer sent it", low=1),
    Column(
        "client_clock_error_ms", "number", "how far the clocks of two client hosts may be apart at most", "ms", low=0
    ),
    *_ANSWERS,
    Column("usd_per_mtok_output", "number", "price per million output tokens at this throughput", "USD", low=0),
)
