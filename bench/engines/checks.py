"""The check of each engine rule: what breaks it, or None where it holds or an input is unknown."""

import re
from collections.abc import Callable

from bench.catalog.rows import CatalogModel
from bench.engines.config import EngineConfig
from bench.engines.speculation import speculation_in

FULLEST = 0.95  # of a GPU's memory, from which on graphs find no room
AITER_MLA_HEADS = (16, 128)
UNIFIED_ATTENTION = ("VLLM_ROCM_USE_AITER_UNIFIED_ATTENTION", "VLLM_USE_AITER_UNIFIED_ATTENTION")  # guides write both
# With which vLLM and SGLang accept a context beyond the native one.
LONGER_CONTEXT = ("VLLM_ALLOW_LONG_MAX_MODEL_LEN", "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN")
SWITCHED_ON = ("1", "true", "True")


def _heads_per_gpu(config: EngineConfig) -> str | None:
    model, tp = config.model, config.tp_size
    if model is None or config.is_attention_parallel or not model.n_heads % tp:
        return None
    return f"{model.n_heads} attention heads on {tp} GPUs"


def _kv_heads_per_gpu(config: EngineConfig) -> str | None:
    model, tp = config.model, config.tp_size
    if (
        model is None
        or config.is_attention_parallel
        or model.mla_kv_lora
        or not (model.n_kv_heads % tp and tp % model.n_kv_heads)
    ):
        return None
    return f"{model.n_kv_heads} KV heads on {tp} GPUs"


def _width_per_gpu(config: EngineConfig) -> str | None:
    cut = [width for width in _cut_widths(config) if width % config.tp_size]
    return f"an MLP of width {cut[0]} on {config.tp_size} GPUs" if cut else None


def _experts_per_rank(config: EngineConfig) -> str | None:
    model, ranks = config.model, config.tp_size * config.dp_size
    if model is None or not config.is_expert_parallel or not model.experts % ranks:
        return None
    return f"{model.experts} experts on {ranks} ranks"


def _fp8_block(config: EngineConfig) -> str | None:
    block = config.model.fp8_block if config.model else None
    if config.model is None or not block or not _is_makers_fp8(config, config.model):
        return None
    cut = [width for width in _cut_widths(config) if width % config.tp_size or width // config.tp_size % block]
    if not cut:
        return None
    return f"an MLP of width {cut[0]} on {config.tp_size} GPUs is {cut[0] / config.tp_size:g} each, not n x {block}"


def _is_makers_fp8(config: EngineConfig, model: CatalogModel) -> bool:
    """Whether the weights are the maker's own FP8 checkpoint: others, and the engine itself, scale otherwise."""
    maker, _, name = (config.checkpoint or "").rpartition("/")
    is_theirs = maker.rpartition("/")[2].lower() == model.maker.lower()
    is_small = "fp8" in name.lower() or "--quantization" not in config.flags
    return config.precision == "fp8" and is_theirs and is_small


def _cut_widths(config: EngineConfig) -> tuple[int, ...]:
    model = config.model
    if model is None:
        return ()
    routed = 0 if config.is_expert_parallel else model.moe_ffn
    return tuple(width for width in (model.ffn, routed, model.shared_ffn) if width)


def _aiter_mla(config: EngineConfig) -> CatalogModel | None:
    """The model, where its latent attention is AITER's."""
    is_on = _is_amd(config) and config.is_aiter and config.environment.get("VLLM_ROCM_USE_AITER_MLA") != "0"
    return config.model if is_on and config.model and config.model.mla_kv_lora else None


def _is_amd(config: EngineConfig) -> bool:
    return config.gpu is not None and config.gpu.vendor == "AMD"


def _mla_block_size(config: EngineConfig) -> str | None:
    model, size = _aiter_mla(config), config.flags.get("--block-size")
    if model is None or size == "1":
        return None
    return f"{model.model} with {'no --block-size' if size is None else f'--block-size {size}'}"


def _mla_heads_per_gpu(config: EngineConfig) -> str | None:
    model = _aiter_mla(config)
    if model is None or model.n_heads / config.tp_size in AITER_MLA_HEADS:
        return None
    return f"{model.n_heads} heads on {config.tp_size} GPUs: {model.n_heads / config.tp_size:g} each"


def _mla_kv_offload(config: EngineConfig) -> str | None:
    given = [name for name in config.flags if name.startswith("--kv-offloading")]
    has_latent = config.model is not None and config.model.mla_kv_lora
    return f"{config.model.model} with {given[0]}" if config.model and has_latent and given else None


def _fp8_without_arithmetic(config: EngineConfig) -> str | None:
    lacks = config.gpu is not None and config.gpu.fp8_tflops is None
    return f"FP8 on {config.gpu.gpu}" if config.gpu and lacks and config.precision == "fp8" else None


def _fp4_without_arithmetic(config: EngineConfig) -> str | None:
    lacks = config.gpu is not None and config.gpu.fp4_tflops is None
    is_small = config.precision in ("fp4", "nvfp4", "mxfp4")
    return f"{config.precision} on {config.gpu.gpu}" if config.gpu and lacks and is_small else None


def _memory_utilization(config: EngineConfig) -> str | None:
    value = config.flags.get("--gpu-memory-utilization", "")
    is_mended = config.environment.get("VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS") == "0"
    is_full = re.fullmatch(r"\d*\.?\d+", value) is not None and float(value) >= FULLEST
    return f"--gpu-memory-utilization {value}" if config.gpu and is_full and not is_mended else None


def _context_length(config: EngineConfig) -> str | None:
    model, asked = config.model, config.max_model_len
    is_extended = {"--hf-overrides", "--rope-scaling", "--json-model-override-args"} & config.flags.keys()
    is_allowed = any(config.environment.get(name) in SWITCHED_ON for name in LONGER_CONTEXT)
    if model is None or asked is None or is_extended or is_allowed or asked <= model.native_ctx:
        return None
    return f"max_model_len = {asked}, native context of {model.model} {model.native_ctx}"


def _gpus_for_ranks(config: EngineConfig) -> str | None:
    ranks = config.rank_count or config.tp_size * config.pp_size * config.dp_size
    has = config.gpu_count
    return f"{ranks} ranks on {has} GPU{'s' if has > 1 else ''}" if has is not None and ranks > has else None


def _is_gpt_oss_by_aiter(config: EngineConfig) -> bool:
    return _is_amd(config) and config.is_aiter and config.model is not None and config.model.model.startswith("gpt-oss")


def _gpt_oss_attention(config: EngineConfig) -> str | None:
    asked, given = config.environment, config.flags.get("--attention-backend")
    is_unified = "1" in (asked.get(name) for name in UNIFIED_ATTENTION)
    is_right = given == "ROCM_AITER_UNIFIED_ATTN" or (is_unified and asked.get("VLLM_ROCM_USE_AITER_MHA") == "0")
    return "gpt-oss with another attention backend" if _is_gpt_oss_by_aiter(config) and not is_right else None


def _gpt_oss_block_size(config: EngineConfig) -> str | None:
    size = config.flags.get("--block-size")
    return f"gpt-oss with --block-size {size or 'unset'}" if _is_gpt_oss_by_aiter(config) and size != "64" else None


def _visible_devices(config: EngineConfig) -> str | None:
    hip, rocr = (config.environment.get(f"{name}_VISIBLE_DEVICES") for name in ("HIP", "ROCR"))
    return f"HIP {hip}, ROCR {rocr}" if hip is not None and rocr is not None and hip != rocr else None


def _nccl_one_gpu(config: EngineConfig) -> str | None:
    is_one = config.tp_size * config.pp_size * config.dp_size == 1
    return "NCCL_MIN_NCHANNELS for one GPU" if is_one and "NCCL_MIN_NCHANNELS" in config.environment else None


def _nccl_graph_hang(config: EngineConfig) -> str | None:
    return "NCCL_MIN_NCHANNELS is set" if "NCCL_MIN_NCHANNELS" in config.environment else None


def _quick_reduce(config: EngineConfig) -> str | None:
    value = config.environment.get("VLLM_ROCM_QUICK_REDUCE_QUANTIZATION", "NONE")
    return f"VLLM_ROCM_QUICK_REDUCE_QUANTIZATION={value}" if value != "NONE" else None


def _speculation_config(config: EngineConfig) -> str | None:
    asked = speculation_in(config.flags)
    return asked.problem if asked else None


def _speculation_own_head(config: EngineConfig) -> str | None:
    asked, model = speculation_in(config.flags), config.model
    if model is None or asked is None or not asked.is_own_head or asked.draft_model or "MTP" in (model.note or ""):
        return None
    return f"{asked.method} speculation of {model.model}"


CHECKS: dict[str, Callable[[EngineConfig], str | None]] = {
    "heads_per_gpu": _heads_per_gpu,
    "kv_heads_per_gpu": _kv_heads_per_gpu,
    "width_per_gpu": _width_per_gpu,
    "experts_per_rank": _experts_per_rank,
    "fp8_block": _fp8_block,
    "mla_block_size": _mla_block_size,
    "mla_heads_per_gpu": _mla_heads_per_gpu,
    "mla_kv_offload": _mla_kv_offload,
    "fp8_without_arithmetic": _fp8_without_arithmetic,
    "fp4_without_arithmetic": _fp4_without_arithmetic,
    "memory_utilization": _memory_utilization,
    "context_length": _context_length,
    "gpus_for_ranks": _gpus_for_ranks,
    "gpt_oss_attention": _gpt_oss_attention,
    "gpt_oss_block_size": _gpt_oss_block_size,
    "visible_devices": _visible_devices,
    "nccl_one_gpu": _nccl_one_gpu,
    "nccl_graph_hang": _nccl_graph_hang,
    "quick_reduce": _quick_reduce,
    "speculation_config": _speculation_config,
    "speculation_own_head": _speculation_own_head,
}
