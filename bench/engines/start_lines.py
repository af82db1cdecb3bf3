"""What each engine logs of its start: the lines that time a phase, and those that say whether its compiler's cache hit.

`seen` names where the form of a line is known from: a release whose log was read, or its source. A release that words
a line in another way gets one more row here; a phase that no row finds is unknown, not zero.
"""

from dataclasses import dataclass
from typing import Literal

Phase = Literal["import", "download", "weights", "device", "compilation", "graph_capture", "warmup"]

_SECONDS = r"(?P<s>\S+)"
_VLLM_STAMP = r"\b(?P<month>\d\d)-(?P<day>\d\d) (?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d) \["
_SGLANG_STAMP = (
    r"^\[(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d) (?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)[ \]]"
)
_AITER = r"\[aiter\] start build \["
_LLAMA_CPP = "log of llama.cpp 0.5.0-dev on CPU"
_CPU_0_32 = "log of vLLM 0.32.0 on CPU"


@dataclass(frozen=True, kw_only=True)
class Took:
    """A line with the seconds of a phase as the engine measured them, in the group `s` of its pattern.

    `holds` are phases whose time is part of these seconds; it is subtracted.
    """

    phase: Phase
    pattern: str
    seen: str
    holds: tuple[Phase, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Between:
    """Two lines whose times bound a phase of which the engine prints no seconds; `begin` None: the process' start."""

    phase: Phase
    begin: str | None
    end: str
    seen: str


@dataclass(frozen=True, kw_only=True)
class CacheLine:
    """A line that shows whether compiled code came from a cache (`warm`) or was compiled (`cold`)."""

    cache: Literal["cold", "warm"]
    pattern: str
    seen: str


@dataclass(frozen=True)
class StartLog:
    """The log of an engine's start. Of several rows for a phase the first that finds a line counts.

    `stamp` is the time of a line: a date and a time of day, or the time since its process began. `process` is the
    process that wrote it: each rank of a model writes the same lines.
    """

    stamp: str = r"(?!)"
    process: str = r"(?!)"
    took: tuple[Took, ...] = ()
    between: tuple[Between, ...] = ()
    cache: tuple[CacheLine, ...] = ()


VLLM = StartLog(
    stamp=_VLLM_STAMP,
    process=r"^\(([^)]*)\)",
    took=(
        Took(
            phase="download",
            pattern=rf"Time spent downloading weights for .*: {_SECONDS} seconds",
            seen="source of vLLM 0.32.0, which prints it from half a second on",
        ),
        Took(phase="weights", pattern=rf"Loading weights took {_SECONDS} seconds", seen=_CPU_0_32),
        Took(
            phase="device",
            pattern=rf"Model loading took \S+ GiB(?: memory)? and {_SECONDS} seconds",
            seen="vLLM 44106 (0.2x on a GPU) and 20264 (0.9); source of 0.32.0",
            holds=("download", "weights"),
        ),
        Took(
            phase="device",
            pattern=rf"Initializing model took {_SECONDS} seconds",
            seen=f"{_CPU_0_32}, which does not print `Model loading took`; 0.31.0 has neither line",
        ),
        Took(
            phase="compilation",
            pattern=rf"torch\.compile (?:and initial profiling/warmup run together )?took {_SECONDS} s in total",
            seen="source of vLLM 0.32.0",
        ),
        Took(
            phase="compilation",
            pattern=rf"torch\.compile takes {_SECONDS} s in total",
            seen="vLLM 13144 (0.7), 20264 (0.9), 34399 (0.15)",
        ),
        Took(
            phase="graph_capture",
            pattern=rf"Graph capturing finished in {_SECONDS} secs",
            seen="vLLM 20264 (0.9); source of 0.32.0, which prints whole seconds",
        ),
        Took(
            phase="warmup",
            pattern=rf"init engine \(profile, create kv cache, warmup model\) took {_SECONDS} s",
            seen=f"{_CPU_0_32}; vLLM 20264 (0.9)",
            holds=("compilation", "graph_capture"),
        ),
    ),
    between=(
        Between(phase="import", begin=None, end=r"Starting to load model ", seen=_CPU_0_32),
        Between(
            phase="compilation",
            begin=r"Warming up model for the compilation\.\.\.",
            end=r"saved AOT compiled function to|Directly load AOT compilation from path",
            seen=f"{_CPU_0_32}, which prints no seconds of a compilation",
        ),
    ),
    cache=(
        CacheLine(
            cache="warm",
            pattern=r"Directly (?:load AOT compilation from path|load the compiled graph|lookup the graph)",
            seen="vLLM 13144 (0.7), 16848 (0.8); source of 0.32.0",
        ),
        # A cached entry that cannot be loaded: it is compiled again, with what else the cache has.
        CacheLine(cache="warm", pattern=r"Compiling model again due to a load failure from ", seen=_CPU_0_32),
        CacheLine(
            cache="cold",
            pattern=r"Compiling a graph for .* takes |saved AOT compiled function to ",
            seen=f"vLLM 34399 (0.15); {_CPU_0_32}",
        ),
        CacheLine(cache="cold", pattern=_AITER, seen="ROCm/aiter"),
    ),
)

SGLANG = StartLog(
    stamp=_SGLANG_STAMP,
    process=r"^\[[-\d]+ [:\d]+ ([^\]]+)\]",
    took=(
        Took(
            phase="graph_capture",
            pattern=rf"Capture cuda graph end\. Time elapsed: {_SECONDS} s\.",
            seen="SGLang 4257 and 4339",
        ),
    ),
    between=(
        Between(phase="import", begin=None, end=r"Load weight begin\.", seen="SGLang 4257 and 4339"),
        Between(phase="weights", begin=r"Load weight begin\.", end=r"Load weight end\.", seen="SGLang 4257 and 4339"),
        Between(
            phase="warmup",
            begin=r"Application startup complete\.",
            end=r"The server is fired up and ready to roll!",
            seen="SGLang 4257 and its documentation",
        ),
    ),
    cache=(CacheLine(cache="cold", pattern=_AITER, seen="ROCm/aiter"),),
)

# At its usual verbosity it does not log the empty run, which is then part of the weights.
LLAMA_CPP = StartLog(
    stamp=r"^(?P<minutes>\d{1,4})\.(?P<seconds>\d\d)\.(?P<milliseconds>\d{3})\.(?P<microseconds>\d{3}) [A-Z] ",
    between=(
        Between(phase="import", begin=None, end=r"load_model: loading model '", seen=_LLAMA_CPP),
        Between(
            phase="weights",
            begin=r"load_model: loading model '",
            end=r"warming up the model with an empty run",
            seen=f"{_LLAMA_CPP}, which logs it with --verbosity 4",
        ),
        Between(
            phase="weights",
            begin=r"load_model: loading model '",
            end=r"load_model: initializing, n_slots = ",
            seen=_LLAMA_CPP,
        ),
        Between(
            phase="warmup",
            begin=r"warming up the model with an empty run|load_model: initializing, n_slots = ",
            end=r"llama_server: model loaded",
            seen=_LLAMA_CPP,
        ),
    ),
)
