"""SGLang: its argv, its environment, the line that means ready, its metrics and its failures.

It runs in a container only. Log lines come from public issues of sgl-project/sglang, named at each class.
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
from bench.foreign_json import count, text
from bench.suite.ladder import Rung
from bench.suite.scenario import Scenario

NAME = PREFIX = "sglang"
EXECUTABLE = Path("python3")  # in its image
HELP = ("-m", "sglang.launch_server", "--help")
SETTING = None
INSTALLS = frozenset({"container"})
HAS_PYTHON = True
WEIGHTS: WeightsFormat = "safetensors"
REQUEST_BODY: Mapping[str, object] = {"temperature": 0.0, "ignore_eos": True}
FACT_PAGES = ("/get_server_info",)
NUMERIC_FLAGS = frozenset(
    {"--dtype", "--quantization", "--kv-cache-dtype", "--json-model-override-args", "--load-format"}
)
OWN_FLAGS = {
    "--context-length": "engine.max_model_len",
    **dict.fromkeys(("--model-path", "--model", "--served-model-name"), "model.source and model.name"),
    **dict.fromkeys(("--host", "--port"), "NIGHTBENCH_ENGINE_PORT"),
}
RUNG_FLAGS = {
    "gpu_memory_utilization": "--mem-fraction-static",
    "max_num_seqs": "--max-running-requests",
    "max_num_batched_tokens": "--chunked-prefill-size",
    "kv_cache_dtype": "--kv-cache-dtype",
}
# Its fraction holds weights and KV cache; what is left runs graphs and activations.
LADDER = (Rung(gpu_memory_utilization=0.8), Rung(gpu_memory_utilization=0.7, max_num_seqs=64))
FINISH_REASONS = ()  # its counters have no reasons
READY_LINE = "The server is fired up and ready to roll!"
START_LOG = start_lines.SGLANG
COMPILING = r"\[aiter\] (?:start build|waiting for baton release at|finish build) |Capturing batches"
QUIET = {"HF_HUB_OFFLINE": "1", "DO_NOT_TRACK": "1"}

FAILURES = (
    FailureClass(
        name="oom_kv",
        patterns=(r"Not enough memory\. Please try to increase --mem-fraction-static",),
        remedy="raise --mem-fraction-static, or use smaller weights or more GPUs: the weights leave no KV cache",
        retry="never",
        source="SGLang issues 322 and 4330",
    ),
    FailureClass(
        name="oom_runtime",
        patterns=(
            r"(?:HIP|CUDA)(?: error:)? out of memory",
            r"torch\.(?:cuda\.)?OutOfMemoryError",
            r"[Oo]ut of memory\. Try to lower your batch size",  # "Decode out of memory happened" is a healthy line
        ),
        remedy="lower --mem-fraction-static, --cuda-graph-max-bs or --max-running-requests",
        retry="ladder",
        source="SGLang issues 4330, 4602, 5285 and 11581",
    ),
    FailureClass(
        name="gpu_fault",
        patterns=(
            r"Memory access fault by GPU node-\d+ \(Agent handle: 0x[0-9a-f]+\) on address \S+\. Reason: ",
            r"HSA_STATUS_ERROR_EXCEPTION",
        ),
        remedy="start once more; where it comes again, use another machine",
        retry="replace_machine",
        source="SGLang issues 10195 and 22714",
    ),
    FailureClass(
        name="graph_capture",
        patterns=(r"Capture cuda graph failed",),
        remedy="read the error in the line; --disable-cuda-graph starts without graphs, and is slower",
        retry="never",
        source="SGLang issues 1751 and 4205",
        weight="hint",
    ),
    FailureClass(
        name="bad_configuration",
        patterns=(r"launch_server\.py: error: ", r"(?:Value|FileNotFound|OS)Error: ", r"^AssertionError\b"),
        remedy="mend the setting that the line names in the suite",
        retry="never",
        source="Python's argparse and exceptions",
        weight="hint",
    ),
    FailureClass(
        name="first_request_failed",
        patterns=(r"Initialization failed\. warmup error: ",),
        remedy="read the error below this line in the log",
        retry="never",
        source="SGLang issue 2468",
        weight="hint",
    ),
    FailureClass(
        name="worker_died",
        patterns=(r"Scheduler hit an exception: Traceback", r"Received sigquit from a child process"),
        remedy="read the error below this line in the log",
        retry="never",
        source="SGLang issue 8826",
        weight="echo",
    ),
)

SAMPLED = {
    "requests_running": "num_requests_running",
    "requests_waiting": "num_requests_waiting",
    "kv_cache_usage": "kv_cache_usage_perc",
    "prompt_tokens": "prompt_tokens_total",
    "generation_tokens": "generation_tokens_total",
    "prefix_cache_hits": "prefix_cache_hits_total",
}
# Its documented counters are of tokens. `num_requests_total` of newer releases has some aborted requests in it, so it
# is not held against the client's. How many it aborted or took a slot from is judged where it is counted.
UNCOUNTED = frozenset(
    {ev.SERVER_CLIENT_REQUESTS_RATIO, ev.SERVER_CLIENT_REQUESTS_DIFF, ev.SERVER_ERRORS, ev.PREEMPTIONS}
)
_NAMES = {
    "num_running_reqs": "num_requests_running",
    "num_queue_reqs": "num_requests_waiting",
    "token_usage": "kv_cache_usage_perc",
    "cached_tokens_total": "prefix_cache_hits_total",
    "num_aborted_requests_total": "request_success_total.abort",
    "num_retracted_requests_total": "num_preemptions_total",
}


def argv(executable: Path, scenario: Scenario, model: Path, port: int) -> tuple[str, ...]:
    """The command that serves this scenario's model on loopback."""
    engine = scenario.engine
    listen = ("--host", "127.0.0.1", "--port", str(port), "--served-model-name", scenario.model.name)
    serve = (str(executable), "-m", "sglang.launch_server", "--model-path", str(model))
    return (*serve, *listen, "--context-length", str(engine.max_model_len), "--enable-metrics", *engine.flags)


def environment(scenario: Scenario) -> dict[str, str]:
    """What the engine's process gets beside the host's own environment."""
    return {**QUIET, **scenario.engine.environment}


def slots(flags: Sequence[str]) -> int | None:
    """How many requests it computes at the same time, as its flags say; None where they do not."""
    return whole_number(parse_flags(flags), "--max-running-requests")


def cache_block_tokens(_metrics: str) -> None:
    """Its metrics do not say how large a block of its prefix cache is."""


def is_server(words: Sequence[str]) -> bool:
    """Whether this is the command line of a server of this engine, or of one of its workers."""
    return bool(words) and ("sglang.launch_server" in words or words[0].startswith("sglang::"))


def read_facts(pages: Mapping[str, Mapping[str, Any]]) -> tuple[str | None, int | None]:
    """The engine's version and the context of one request in tokens, from the contents of FACT_PAGES."""
    info = pages["/get_server_info"]
    return text(info.get("version")), count(info.get("context_length"))


def find_failure(log: str) -> Failure | None:
    """The root cause that a log shows, or None."""
    return failures.find_failure(log, FAILURES)


def attention_backend(log: str) -> str | None:
    """The attention backend that the start-up log names; None if it names none."""
    match = re.search(
        r"\battention_backend='(\w+)'|Attention backend not explicitly specified\. Use (\w+) backend by default", log
    )
    return match[1] or match[2] if match else None


def kv_cache_tokens(log: str) -> int | None:
    """The KV cache's capacity in tokens, from the start-up log; None if the log lacks it."""
    match = re.search(r"KV Cache is allocated\. .*?#tokens: (\d+)|\bmax_total_num_tokens=(\d+)", log)
    return int(match[1] or match[2]) if match else None


def counters(metrics: str) -> dict[str, float]:
    """Its counters and gauges, by the names that vLLM has for them."""
    return {_NAMES.get(name, name): value for name, value in prometheus.sums(metrics, PREFIX).items()}
