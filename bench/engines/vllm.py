"""vLLM: its argv, its environment, the line that means ready, and the metrics it reports.

Log texts as seen with vLLM 0.32.0; tests hold them against real logs in tests/data.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.engines import failures, prometheus, start_lines, vllm_failures
from bench.engines.config import parallel_sizes, parse_flags, whole_number
from bench.engines.failures import Failure
from bench.engines.module import WeightsFormat
from bench.foreign_json import count, first, text
from bench.suite.ladder import Rung
from bench.suite.scenario import Scenario
from bench.suite.workloads.adapters import adapter_names, generated_adapters

NAME = PREFIX = "vllm"
EXECUTABLE = Path("vllm")  # in its image
HELP = ("serve", "--help=all")
SETTING = "NIGHTBENCH_VLLM_EXECUTABLE"
INSTALLS = frozenset({"venv", "container"})
HAS_PYTHON = True
WEIGHTS: WeightsFormat = "safetensors"
# Token ids in the stream make tokens countable event by event; usage alone gives one sum a request.
REQUEST_BODY: Mapping[str, object] = {"temperature": 0.0, "ignore_eos": True, "return_token_ids": True}
FACT_PAGES = ("/version", "/v1/models")
NUMERIC_FLAGS = frozenset(
    {"--dtype", "--quantization", "-q", "--kv-cache-dtype", "--calculate-kv-scales", "--hf-overrides", "--load-format"}
)
OWN_FLAGS = {
    "--max-model-len": "engine.max_model_len",
    **dict.fromkeys(("--model", "--served-model-name"), "model.source and model.name"),
    **dict.fromkeys(("--host", "--port"), "NIGHTBENCH_ENGINE_PORT"),
}
RUNG_FLAGS = {
    "gpu_memory_utilization": "--gpu-memory-utilization",
    "max_num_seqs": "--max-num-seqs",
    "max_num_batched_tokens": "--max-num-batched-tokens",
    "kv_cache_dtype": "--kv-cache-dtype",
    "kv_cache_memory_bytes": "--kv-cache-memory-bytes",
}
FINISH_REASONS = ("stop", "length", "abort", "error", "repetition")
READY_LINE = "Application startup complete."
START_LOG = start_lines.VLLM
# Each line is a step of compiling kernels at the first start, which may take longer than loading the weights.
COMPILING = r"\[aiter\] (?:start build|waiting for baton release at|finish build) "
# What an ordered stop logs first; which of the two processes comes first is a race.
STOP_LINE = r"\[shutdown\] (?:API server: shutdown triggered|EngineCore: trigger received signal=SIGTERM)"
FAILURES = vllm_failures.FAILURES
# The default of --block-size: of vLLM itself, and of its CPU platform, as cache_config_info of its metrics shows.
_BLOCK_TOKENS, _CPU_BLOCK_TOKENS = 16, 128
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
UNCOUNTED: frozenset[str] = frozenset()


def argv(executable: Path, scenario: Scenario, model: Path, port: int) -> tuple[str, ...]:
    """The command that serves this scenario's model on loopback."""
    engine = scenario.engine
    listen = ("--host", "127.0.0.1", "--port", str(port), "--served-model-name", scenario.model.name)
    serve = (str(executable), "serve", str(model), *listen, "--max-model-len", str(engine.max_model_len))
    return (*serve, *_adapters(scenario.model.source, model), *engine.flags)


def _adapters(source: str, model: Path) -> tuple[str, ...]:
    """The flags for adapters that were generated with the model, in its folder."""
    names = adapter_names(generated_adapters(source))
    return ("--enable-lora", "--lora-modules", *(f"{name}={model}/adapters/{name}" for name in names)) if names else ()


def environment(scenario: Scenario) -> dict[str, str]:
    """What the engine's process gets beside the host's own environment."""
    return {**QUIET, **scenario.engine.environment}


def slots(flags: Sequence[str]) -> int | None:
    """How many requests its replicas compute at the same time, as its flags say; None where they do not."""
    given = parse_flags(flags)
    of_each = whole_number(given, "--max-num-seqs")
    return None if of_each is None else of_each * parallel_sizes(given).dp_size


def block_tokens(flags: Mapping[str, str], *, has_gpu: bool) -> int:
    """The tokens of a block of its KV cache; its prefix cache has whole blocks only."""
    return int(flags.get("--block-size") or (_BLOCK_TOKENS if has_gpu else _CPU_BLOCK_TOKENS))


def cache_block_tokens(metrics: str) -> int | None:
    """The same of a running server, as its metrics say it; None if they do not."""
    match = re.search(r'^vllm:cache_config_info\{[^}]*\bblock_size="(\d+)"', metrics, re.MULTILINE)
    return int(match[1]) if match else None


def is_server(words: Sequence[str]) -> bool:
    """Whether this is the command line of a server of this engine, or of one of its workers."""
    is_serving = "serve" in words[1:3] and any("vllm" in word for word in words[:2])
    return bool(words) and (words[0].startswith("VLLM::") or is_serving)


def read_facts(pages: Mapping[str, Mapping[str, Any]]) -> tuple[str | None, int | None]:
    """The engine's version and the context of one request in tokens, from the contents of FACT_PAGES."""
    model = first(pages["/v1/models"].get("data"))
    return text(pages["/version"].get("version")), count(model.get("max_model_len"))


def find_failure(log: str) -> Failure | None:
    """The root cause a log shows, or None where it shows none.

    What follows the order to stop is left out: an ordinary stop logs EngineDeadError too.
    """
    return failures.find_failure(re.split(STOP_LINE, log, maxsplit=1)[0], FAILURES)


def kv_cache_tokens(log: str) -> int | None:
    """The KV cache's capacity in tokens, from the start-up log; None if the log lacks it."""
    match = re.search(r"KV cache size: (\d[\d,]*) tokens", log)
    return int(match[1].replace(",", "")) if match else None


def attention_backend(log: str) -> str | None:
    """The attention backend that the start-up log names; None if it names none, or several."""
    lines: list[str] = re.findall(r"Using (.+) backend\b", log, re.IGNORECASE)
    named = {name.removesuffix(" attention") for name in lines if re.search("attn|attention|mla", name, re.IGNORECASE)}
    return named.pop() if len(named) == 1 else None


def counters(metrics: str) -> dict[str, float]:
    """Its counters and gauges in a Prometheus text, summed over their labels, without the prefix `vllm:`.

    `request_success_total` is also given by reason, as `request_success_total.length` and so on, and accepted draft
    tokens by their position in the draft, from 0.
    """
    return prometheus.sums(metrics, PREFIX, ("finished_reason", "position"))
