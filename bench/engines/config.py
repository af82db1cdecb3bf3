"""How an engine was or will be started, as far as its rules ask: model, GPUs, sizes, flags and environment."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bench.catalog.rows import CatalogModel, Gpu
from bench.server_facts import ParallelSizes

_SHORT = {
    "-tp": "--tensor-parallel-size",
    "-pp": "--pipeline-parallel-size",
    "-dp": "--data-parallel-size",
    "-ep": "--enable-expert-parallel",
}


@dataclass(frozen=True)
class EngineConfig:
    """The configuration of one engine's start; None for an unknown value, which no rule checks."""

    engine: str
    version: str
    model: CatalogModel | None = None
    gpu: Gpu | None = None
    gpu_count: int | None = None
    precision: str | None = None  # of the weights as served
    checkpoint: str | None = None  # where they come from: `Qwen/Qwen3-235B-A22B-FP8`
    max_model_len: int | None = None
    tp_size: int = 1
    pp_size: int = 1
    dp_size: int = 1
    rank_count: int | None = None  # of both servers of a disaggregated engine; None: one server, by its sizes
    flags: Mapping[str, str] = field(default_factory=dict)  # "" for a flag without a value
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_aiter(self) -> bool:
        """Whether AMD's kernels are switched on."""
        return self.environment.get("VLLM_ROCM_USE_AITER") == "1"

    @property
    def is_expert_parallel(self) -> bool:
        """Whether experts are dealt out whole and not cut."""
        return "--enable-expert-parallel" in self.flags

    @property
    def is_attention_parallel(self) -> bool:
        """Whether the GPUs of a tensor-parallel group divide requests and not heads, as SGLang's can."""
        return "--enable-dp-attention" in self.flags


def flag_groups(words: Sequence[str]) -> list[tuple[str, ...]]:
    """The words of a command as groups: each flag with its values."""
    groups: list[tuple[str, ...]] = []
    for word in words:
        if word.startswith("-") and not word.lstrip("-")[:1].isdigit():
            groups.append((word,))
        elif groups:
            groups[-1] = (*groups[-1], word)
    return groups


def parse_flags(words: Sequence[str]) -> dict[str, str]:
    """Flags by their long name with hyphens, as vLLM reads them: `-tp 8`, `--max_num_seqs=4` and `--max-num-seqs 4`."""
    flags: dict[str, str] = {}
    name = ""
    for word in words:
        is_flag = word.startswith("-") and not word.lstrip("-")[:1].isdigit()
        if is_flag:
            name, has_value, value = word.partition("=")
            name = _SHORT.get(name, name.replace("_", "-"))
            flags[name] = value if has_value else ""
        elif name and not flags[name]:
            flags[name] = word
    return flags


def parallel_sizes(flags: Mapping[str, str]) -> ParallelSizes:
    """How the flags of vLLM or SGLang spread a model; a size that is missing or no number is 1, as their default is."""
    tensor, pipeline, data = (_size(flags, kind) for kind in ("tensor", "pipeline", "data"))
    experts = tensor * data if "--enable-expert-parallel" in flags else _size(flags, "expert")
    is_dealt = "--enable-expert-parallel" in flags or experts > 1
    return ParallelSizes(
        tp_size=tensor,
        pp_size=pipeline,
        dp_size=data,
        ep_size=experts if is_dealt else None,
        is_dp_inside_tp="--enable-dp-attention" in flags,  # SGLang's
    )


def memory_share(flags: Mapping[str, str]) -> float | None:
    """The share of the GPU's memory that the engine may take, 0 to 1; None where no flag says it as a number."""
    value = flags.get("--gpu-memory-utilization") or flags.get("--mem-fraction-static", "")
    return float(value) if re.fullmatch(r"0?\.\d+|1(?:\.0*)?", value) else None


def whole_number(flags: Mapping[str, str], name: str) -> int | None:
    """The value of a flag, from 1; None if it is missing or not such a number."""
    value = flags.get(name, "")
    return int(value) if value.isdigit() and int(value) else None


def _size(flags: Mapping[str, str], kind: str) -> int:
    names = (f"--{kind}-parallel-size", f"--{kind[0]}p-size", f"--{kind[0]}p")
    return next((whole_number(flags, name) for name in names if name in flags), None) or 1
