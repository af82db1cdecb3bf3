"""llama.cpp's `llama-server`: its argv, its environment, the line that means ready, its metrics and its failures.

Texts of the sources in llama-cpp-python 0.3.36, read there, unless a source says otherwise.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench import evidence_columns as ev
from bench.engines import failures, prometheus, start_lines
from bench.engines.config import parse_flags, whole_number
from bench.engines.failures import Failure, FailureClass
from bench.engines.module import WeightsFormat
from bench.foreign_json import count, members, text
from bench.suite.ladder import Rung
from bench.suite.scenario import Scenario

NAME = "llama.cpp"
PREFIX = "llamacpp"
EXECUTABLE = Path("/app/llama-server")  # in the images of its own registry
HELP = ("--help",)
SETTING = "NIGHTBENCH_LLAMA_SERVER"
INSTALLS = frozenset({"venv", "container"})
HAS_PYTHON = False
WEIGHTS: WeightsFormat = "gguf"
# Its defaults are others: temperature 0.8, top_k 40, top_p 0.95, min_p 0.05, and a prompt cache that is on.
REQUEST_BODY: Mapping[str, object] = {
    "temperature": 0.0,
    "top_k": 0,
    "top_p": 1.0,
    "min_p": 0.0,
    "ignore_eos": True,
    "cache_prompt": False,
}
FACT_PAGES = ("/props",)
NUMERIC_FLAGS = frozenset({"-ctk", "--cache-type-k", "-ctv", "--cache-type-v", "-fa", "--flash-attn", "--override-kv"})
OWN_FLAGS = {
    **dict.fromkeys(("-c", "--ctx-size"), "engine.max_model_len, which is the context of one request"),
    **dict.fromkeys(("-m", "--model", "-a", "--alias"), "model.source and model.name"),
    **dict.fromkeys(("--host", "--port"), "NIGHTBENCH_ENGINE_PORT"),
}
RUNG_FLAGS = {
    "max_num_seqs": "--parallel",
    "max_num_batched_tokens": "--batch-size",
    "kv_cache_dtype": "--cache-type-k",
}
LADDER: tuple[Rung, ...] = ()
FINISH_REASONS = ()  # its counters have no reasons
READY_LINE = "listening on http://"
START_LOG = start_lines.LLAMA_CPP
COMPILING = r"(?!)"  # it compiles nothing at its start
_READ = "read in the source of llama.cpp 0.5.0-dev"

FAILURES = (
    FailureClass(
        name="oom_kv",
        patterns=(r"failed to allocate buffer for (?:kv|rs) cache",),
        remedy="lower max_model_len or --parallel, whose product is the KV cache, or set --cache-type-k q8_0",
        retry="ladder",
        source=_READ,
    ),
    FailureClass(
        name="oom_weights",
        patterns=(r"unable to allocate \w+ buffer",),
        remedy="use more GPUs, smaller weights, or fewer --n-gpu-layers",
        retry="never",
        source="llama.cpp issue 20431",
    ),
    FailureClass(
        name="oom_runtime",
        patterns=(
            r"failed to allocate compute (?:pp |tg )?buffers",
            r"cudaMalloc failed: out of memory$",
            r"(?:CUDA|ROCm) error: out of memory",
        ),
        remedy="lower --parallel, --batch-size or max_model_len",
        retry="ladder",
        source="llama.cpp issue 20431",
        weight="hint",
    ),
    FailureClass(
        name="bad_weights",
        patterns=(
            r"invalid magic characters: .*, expected 'GGUF'",
            r"failed to open GGUF file",
            r"unknown model architecture: '",
            r"error loading model(?: hyperparameters| vocabulary)?: (?!unable to allocate)",
        ),
        remedy="give a GGUF file that this version of llama.cpp can read",
        retry="never",
        source=_READ,
        weight="hint",
    ),
    FailureClass(
        name="port_in_use",
        patterns=(r"couldn't (?:bind HTTP server socket|start HTTP listener)",),
        remedy="end the process that listens there, or set NIGHTBENCH_ENGINE_PORT",
        retry="same",
        source=_READ,
    ),
    FailureClass(
        name="bad_configuration",
        patterns=(r"error: invalid argument: ", r"error while handling argument "),
        remedy="mend the flag that the line names in the suite",
        retry="never",
        source=_READ,
    ),
    FailureClass(
        name="model_not_loaded",
        patterns=(r"exiting due to model loading error", r"failed to load model"),
        remedy="read the first error above this line in the log",
        retry="never",
        source=_READ,
        weight="echo",
    ),
)

SAMPLED = {
    "requests_running": "num_requests_running",
    "requests_waiting": "num_requests_waiting",
    "prompt_tokens": "prompt_tokens_total",
    "generation_tokens": "generation_tokens_total",
    "prefix_cache_hits": "prefix_cache_hits_total",
    "spec_drafts": "spec_decode_num_drafts_total",
    "spec_draft_tokens": "spec_decode_num_draft_tokens_total",
    "spec_accepted_tokens": "spec_decode_num_accepted_tokens_total",
}
# It counts tokens and not how many requests ended or why, and it takes no slot from a request that computes. Whether
# it counts cached tokens depends on its release: b10488 does, b10012 does not.
UNCOUNTED = frozenset(
    {
        ev.SERVER_CLIENT_REQUESTS_RATIO,
        ev.SERVER_CLIENT_REQUESTS_DIFF,
        ev.SERVER_ERRORS,
        ev.PREEMPTIONS,
        ev.PREFIX_HIT_SHARE,
    }
)
_NAMES = {
    "requests_processing": "num_requests_running",
    "requests_deferred": "num_requests_waiting",
    "tokens_predicted_total": "generation_tokens_total",
    "prompt_tokens_cached_total": "prefix_cache_hits_total",
}


def slots(flags: Sequence[str]) -> int:
    """How many requests it computes at the same time, one without a flag; further ones wait inside it."""
    given = parse_flags(flags)
    return whole_number(given, "--parallel") or whole_number(given, "-np") or 1


def argv(executable: Path, scenario: Scenario, model: Path, port: int) -> tuple[str, ...]:
    """The command that serves this scenario's GGUF file on loopback.

    It divides its whole context by its slots, so that each request has the suite's `max_model_len`.
    """
    engine = scenario.engine
    count = slots(engine.flags)
    listen = ("--host", "127.0.0.1", "--port", str(port), "--alias", scenario.model.name)
    size: tuple[str, ...] = ("--ctx-size", str(engine.max_model_len * count))
    if not {"--parallel", "-np"} & parse_flags(engine.flags).keys():
        size += ("--parallel", str(count))  # its own default is a number that it chooses
    return (str(executable), "--model", str(model), *listen, *size, "--metrics", "--no-webui", *engine.flags)


def environment(scenario: Scenario) -> dict[str, str]:
    """What the engine's process gets beside the host's own environment."""
    return dict(scenario.engine.environment)


def cache_block_tokens(_metrics: str) -> None:
    """Its metrics do not say how large a block of its prefix cache is."""


def is_server(words: Sequence[str]) -> bool:
    """Whether this is the command line of a server of this engine."""
    return bool(words) and Path(words[0]).name == "llama-server"


def read_facts(pages: Mapping[str, Mapping[str, Any]]) -> tuple[str | None, int | None]:
    """The build, and the context of one slot in tokens, from the contents of FACT_PAGES."""
    props = pages["/props"]
    return text(props.get("build_info")), count(members(props.get("default_generation_settings")).get("n_ctx"))


def find_failure(log: str) -> Failure | None:
    """The root cause that a log shows, or None."""
    return failures.find_failure(log, FAILURES)


def attention_backend(log: str) -> str | None:
    """Whether it uses flash attention, as the start-up log states; None if it does not."""
    match = re.search(r"llama_context: flash_attn\s+= (\w+)", log)
    return f"flash_attn {match[1]}" if match else None


def kv_cache_tokens(log: str) -> int | None:
    """The KV cache's capacity in tokens, over all its slots, from the start-up log; None if the log lacks it."""
    match = re.search(r"load_model: initializing, n_slots = (\d+), n_ctx_slot = (\d+), kv_unified = 'false'", log)
    return int(match[1]) * int(match[2]) if match else None


def counters(metrics: str) -> dict[str, float]:
    """Its counters and gauges, by the names that vLLM has for them; prompt tokens include those from the cache."""
    found = {_NAMES.get(name, name): value for name, value in prometheus.sums(metrics, PREFIX).items()}
    if "prompt_tokens_total" in found:
        found["prompt_tokens_total"] += found.get("prefix_cache_hits_total", 0.0)
    return found
