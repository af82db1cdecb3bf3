"""The columns of `measurements` that hold what was measured; NULL in the row of any other run."""

from collections.abc import Iterator

from bench.engines.vllm import FINISH_REASONS
from bench.metrics import PERCENTILE_MIN_SAMPLES, percentile_name
from warehouse.schema.column import Column

_METRICS = {
    "ttft": "time to first token: request sent to first token",
    "tpot": "mean time per output token after the first, by request",
    "itl": "time between tokens, of all requests: a gap before k tokens counts as k of a k-th",
    "itl_event": "gaps between neighbouring token events, of all requests",
    "e2el": "end-to-end latency: request sent to last token",
}

STATISTICS = ("mean", *(percentile_name(q) for q in PERCENTILE_MIN_SAMPLES))


def _latencies() -> Iterator[Column]:
    for metric, meaning in _METRICS.items():
        for statistic in STATISTICS:
            yield Column(f"{metric}_{statistic}_ms", "number", f"{statistic} of {meaning}", "ms", low=0)
        yield Column(f"{metric}_sample_count", "integer", f"values behind the statistics of `{metric}`", low=0)


def _intervals() -> Iterator[Column]:
    for name, unit in (("ttft_p99", "ms"), ("itl_p99", "ms"), ("output_throughput", "tok_per_s")):
        for end in ("low", "high"):
            said = f"{end}er end of the 95 % interval of `{name}_{unit}`, resampled by request"
            yield Column(f"{name}_{end}_{unit}", "number", said, unit.replace("_per_", "/"), low=0)


# Read by warehouse/judging/answer_history.py out of the nights before.
_ANSWERS = (
    Column("logprob_passage", "text", "version of the fixed passage and prompts that the server was asked"),
    Column("logprob_token_count", "integer", "tokens of the passage that were weighed", "tokens", low=1),
    *(
        Column(
            f"logprob_mean_{when}",
            "number",
            f"mean log-probability of the passage's tokens {place}",
            "nats",
            low=-1000,  # further down than any number: the server gave none
            high=0,
        )
        for when, place in (("before", "before the server's first load"), ("after", "after the server's last load"))
    ),
    Column("logprob_mean_earlier", "number", "median of that over the nights that it was compared with", "nats"),
    Column("earlier_night_count", "integer", "how many nights these are", low=0),
    Column(
        "greedy_fingerprint_before", "text", "hash of the greedy tokens of the fixed prompts, before the first load"
    ),
    Column("greedy_fingerprint_after", "text", "hash of them after the server's last load"),
    Column("greedy_tokens", "counts", "these tokens before the first load: the ids after each prompt, in order"),
    Column(
        "quality_id", "text", "hash of what decides over answers (weights, precision, flags): equal, so must they be"
    ),
    Column("quality_not_checked", "text", "why the answers before the first and after the last load were not compared"),
    Column("quality_not_compared", "text", "why the passage was not compared with earlier nights"),
    Column("greedy_not_compared", "text", "why the greedy tokens were not compared with an earlier night"),
    Column("lm_eval_worst", "text", "the score that fell most against earlier nights, and from what"),
    Column("lm_eval_not_compared", "text", "why a score of lm-eval was not compared with earlier nights"),
)

METRIC_COLUMNS = (
    Column("completed", "integer", "requests answered", low=0),
    Column("failed", "integer", "requests that failed", low=0),
    Column("duration_s", "number", "first send to last token of the answered requests", "s", low=0),
    Column("total_input_tokens", "integer", "prompt tokens of the answered requests", "tokens", low=0),
    Column("total_output_tokens", "integer", "output tokens of the answered requests", "tokens", low=0),
    Column("request_throughput_per_s", "number", "answered requests over the window", "1/s", low=0),
    Column("output_throughput_tok_per_s", "number", "their output tokens over the window", "tok/s", low=0),
    Column("concurrency_achieved", "number", "mean requests in flight, by Little's law", low=0),
    *_latencies(),
    Column("percentile_estimator", "text", "how all percentiles are taken: see METHOD.md"),
    *_intervals(),
    Column("tokens_per_event", "number", "mean tokens of a stream event", low=0),
    Column(
        "steady_begin_s", "number", "begin of the steady window on the client's clock; NULL where there is none", "s"
    ),
    Column("steady_duration_s", "number", "length of the steady window", "s", low=0),
    Column("steady_output_throughput_tok_per_s", "number", "output tokens that arrived in it, over it", "tok/s", low=0),
    Column("steady_slope_share", "number", "change of throughput from its begin to its end, over its mean"),
    Column("steady_slope_se_share", "number", "standard error of that change", low=0),
    Column("ramp_count", "integer", "requests sent before the steady window", low=0),
    Column("steady_count", "integer", "requests sent and ended inside it", low=0),
    Column("drain_count", "integer", "requests sent inside it or later and ended after it", low=0),
    Column("live_mean", "number", "requests in flight in the steady window, by the client's stamps", low=0),
    Column(
        "server_live_mean", "number", "the same by the server: running and waiting, mean of the samples in it", low=0
    ),
    Column("server_live_se", "number", "standard error of that mean", low=0),
    Column("server_live_sample_count", "integer", "samples behind that mean", low=0),
    Column("server_blind_live", "number", "live requests that the server's gauges cannot show on average", low=0),
    Column("scrape_took_p50_ms", "number", "median time the server took to tell its counters", "ms", low=0),
    Column(
        "ttft_over_server_p50_ms", "number", "median of TTFT less the server's own queue and first token time", "ms"
    ),
    Column("dispatch_delay_p99_ms", "number", "p99 of due to sent (open loop)", "ms"),
    Column("slot_refill_p99_ms", "number", "p99 of slot free to sent (closed loop)", "ms"),
    # No bounds on counters: one that fell is judged by server_restarted.
    Column("server_generation_tokens", "integer", "how far the server's count of output tokens moved", "tokens"),
    Column("server_prompt_tokens", "integer", "how far the server's count of prompt tokens moved", "tokens"),
    Column("server_preemptions", "integer", "how far the server's count of preemptions moved"),
    *(
        Column(f"server_finished_{why}", "integer", f"requests the server says it finished with `{why}`")
        for why in FINISH_REASONS
    ),
    Column("server_prefix_cache_queries", "integer", "prompt tokens looked up in the prefix cache", "tokens"),
    Column("server_prefix_cache_hits", "integer", "prompt tokens found in the prefix cache", "tokens"),
    Column("client_lag_p99_ms", "number", "p99 of the client's reading after the kernel had the data", "ms"),
    Column("kernel_stamp_share", "number", "reads with a kernel time stamp", "share", low=0, high=1),
    *_ANSWERS,
    Column("usd_per_mtok_output", "number", "price of a million output tokens at this throughput", "USD", low=0),
)
