"""The columns of a server's start by phase: each run has those of its server, `server_starts` has them once."""

from warehouse.schema.column import Column

_PHASES = {
    "import": "from the start of the process until the engine loads the model: imports, in each of its processes",
    "download": "downloading the weights",
    "weights": "reading the weights",
    "device": "the rest of loading: the layers on their device, and what is made of the weights there",
    "compilation": "compiling the model, or loading compiled code from the cache",
    "graph_capture": "capturing graphs of GPU kernels",
    "warmup": "profiling, allocating the KV cache and warming up, without compilation and capture",
    "first_answer": "first completion, by our own clock",
}
PHASES = tuple(f"start_{name}_s" for name in _PHASES)
START_COLUMNS = (
    Column("server_started_at", "moment", "when its server was started; NULL: not by the night, or before it was kept"),
    *(
        Column(f"start_{name}_s", "number", f"{meaning}; NULL: the engine's log does not show it", "s", low=0)
        for name, meaning in _PHASES.items()
    ),
    Column("start_other_s", "number", "`cold_start_s` less all known phases; NULL where no phase is known", "s"),
    Column(
        "compile_cache",
        "text",
        "whether compiled code came from a cache, by the engine's log: warm, cold, or mixed; NULL: nothing says it",
    ),
    *(
        Column(f"{cache}_{name}_s", "number", f"{meaning} of a start whose `compile_cache` is {cache}", "s", low=0)
        for cache in ("cold", "warm")
        for name, meaning in (("startup", "`cold_start_s`"), ("compilation", "`start_compilation_s`"))
    ),
    Column("start_not_read", "text", "lines of the engine's log that say nothing possible about the start"),
)
# Those that have a series of their own and are judged each night. A compilation with a warm cache is another series
# than one with a cold cache, in the words of `vllm bench startup`.
START_METRICS = (
    *(name for name in PHASES if name != "start_compilation_s"),
    *("cold_startup_s", "cold_compilation_s", "warm_startup_s", "warm_compilation_s"),
)
