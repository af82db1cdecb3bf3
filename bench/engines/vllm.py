"""vLLM: its argv, its environment, the line that means ready, and the metrics it reports.

Log texts as seen with vLLM 0.32.0; tests hold them against real logs in tests/data.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from bench.engines import failures, vllm_failures
from bench.engines.failures import Failure
from bench.suite.ladder import Rung
from bench.suite.scenario import Scenario

FINISH_REASONS = ("stop", "length", "abort", "error", "repetition")
READY_LINE = "Application startup complete."
# Each line is a step of compiling kernels at the first start, which may take longer than loading the weights.
COMPILING = r"\[aiter\] (?:start build|waiting for baton release at|finish build) "
# What an ordered stop logs first; which of the two processes comes first is a race.
STOP_LINE = r"\[shutdown\] (?:API server: shutdown triggered|EngineCore: trigger received signal=SIGTERM)"
FAILURES = vllm_failures.FAILURES
# Tried in this order where memory ran out on GPUs and the suite declares no ladder. Chosen by Nightbench from public
# reports: 0.90 and more leaves too little beside the KV cache; then fewer sequences at once; then a KV cache of half.
LADDER = (
    Rung(gpu_memory_utilization=0.85),
    Rung(gpu_memory_utilization=0.85, max_num_seqs=64, max_num_batched_tokens=2048),
    Rung(gpu_memory_utilization=0.92, kv_cache_dtype="fp8"),
)
# Variables that keep the engine from sending usage data and from downloading anything.
QUIET = {"VLLM_NO_USAGE_STATS": "1", "VLLM_DO_NOT_TRACK": "1", "DO_NOT_TRACK": "1", "HF_HUB_OFFLINE": "1"}

# What one look at the server during a load keeps: our name of it, and vLLM's. A metric that the server does not give
# (speculative decoding that is off, a name of another version) is missing, not zero.
SAMPLED = {
    "requests_running": "num_requests_running",
    "requests_waiting": "num_requests_waiting",
    "kv_cache_usage": "kv_cache_usage_perc",
    "preemptions": "num_preemptions_total",
    "prompt_tokens": "prompt_tokens_total",
    "generation_tokens": "generation_tokens_total",
    "prefix_cache_queries": "prefix_cache_queries_total",
    "prefix_cache_hits": "prefix_cache_hits_total",
    **{f"finished_{why}": f"request_success_total.{why}" for why in FINISH_REASONS},
    "spec_drafts": "spec_decode_num_drafts_total",
    "spec_draft_tokens": "spec_decode_num_draft_tokens_total",
    "spec_accepted_tokens": "spec_decode_num_accepted_tokens_total",
}


def argv(executable: Path, scenario: Scenario, model: Path, port: int) -> tuple[str, ...]:
    """The command that serves this scenario's model on loopback."""
    engine = scenario.engine
    listen = ("--host", "127.0.0.1", "--port", str(port), "--served-model-name", scenario.model.name)
    return (str(executable), "serve", str(model), *listen, "--max-model-len", str(engine.max_model_len), *engine.flags)


def environment(scenario: Scenario) -> dict[str, str]:
    """What the engine's process gets beside the host's own environment."""
    return {**QUIET, **scenario.engine.environment}


def find_failure(log: str) -> Failure | None:
    """The root cause a log shows, or None where it shows none.

    What follows the order to stop is left out: an ordinary stop logs EngineDeadError too.
    """
    return failures.find_failure(re.split(STOP_LINE, log, maxsplit=1)[0], FAILURES)


def kv_cache_tokens(log: str) -> int | None:
    """The KV cache's capacity in tokens, from the start-up log; None if the log lacks it."""
    match = re.search(r"KV cache size: ([\d,]+) tokens", log)
    return int(match[1].replace(",", "")) if match else None


def attention_backend(log: str) -> str | None:
    """The attention backend that the start-up log names; None if it names none, or several."""
    lines: list[str] = re.findall(r"Using (.+) backend\b", log, re.IGNORECASE)
    named = {name.removesuffix(" attention") for name in lines if re.search("attn|attention|mla", name, re.IGNORECASE)}
    return named.pop() if len(named) == 1 else None


def counters(metrics: str) -> dict[str, float]:
    """The engine's counters and gauges of a Prometheus text, summed over their labels, without the `vllm:` prefix.

    `request_success_total` is also given by reason, as `request_success_total.length` and so on.
    """
    sums: dict[str, float] = {}
    for line in metrics.splitlines():
        match = re.match(r"vllm:(\w+)(\{.*\})?\s+(\S+)$", line)
        if match is None or match[1].endswith(("_created", "_bucket")):
            continue
        names = [match[1]]
        reason = re.search(r'finished_reason="(\w+)"', match[2] or "")
        if reason:
            names.append(f"{match[1]}.{reason[1]}")
        for name in names:
            sums[name] = sums.get(name, 0.0) + float(match[3])
    return sums


def sample(metrics: str) -> dict[str, float | None]:
    """What SAMPLED names of a Prometheus text; None for what it does not give."""
    found = counters(metrics)
    return {ours: found.get(theirs) for ours, theirs in SAMPLED.items()}


def counter_deltas(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """How far each counter (`…_total`, and the sum and count of a histogram) moved.

    One that fell is negative: the server was restarted.
    """
    names = [name for name in after if "_total" in name or name.endswith(("_sum", "_count"))]
    return {name: after[name] - before.get(name, 0.0) for name in names}
