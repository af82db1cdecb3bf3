"""The keys of a `context.toml`: the options of `nightbench audit`, with underscores, and more that a file may lack."""

from collections.abc import Mapping
from typing import Any, NamedTuple

_GIB_PER_GB = 1e9 / 2**30


class Key(NamedTuple):
    """What a key states, the field of a claim that it fills, and an older name for it."""

    meaning: str
    field: str = ""  # empty: the field of the key's name
    older: str = ""


KEYS: Mapping[str, Key] = {
    "model": Key("model, by its maker's name"),
    "model_revision": Key("revision of the model's repository"),
    "precision": Key("precision of the weights: bf16, fp8, int4"),
    "kv_precision": Key("precision of the KV cache"),
    "gpu": Key("GPU: MI300X, H100 SXM"),
    "gpu_count": Key("number of GPUs of the whole system"),
    "tp": Key("tensor parallel size", "tp_size", "tp_size"),
    "pp": Key("pipeline parallel size", "pp_size", "pp_size"),
    "dp": Key("data parallel size", "dp_size", "dp_size"),
    "ep": Key("expert parallel size", "ep_size", "ep_size"),
    "engine": Key("engine: vllm, sglang"),
    "engine_version": Key("version of the engine"),
    "image": Key("container image, best with its digest"),
    "max_model_len": Key("context length of the server, in tokens"),
    "kv_cache_tokens": Key("tokens that fit in the KV cache, as the engine's log states it"),
    "kv_max_concurrency": Key("requests of max_model_len that fit in the KV cache, as the engine's log states it"),
    "gpu_memory_utilization": Key("share of GPU memory that the engine may use, such as 0.9"),
    "isl": Key("input tokens per request, as requested"),
    "osl": Key("output tokens per request, as requested"),
    "has_fixed_lengths": Key("whether all requests have the same lengths"),
    "concurrency": Key("requests in flight, or their cap"),
    "request_rate_per_s": Key("requests sent per second"),
    "is_open_loop": Key("whether requests are sent by a rate, not by a free slot"),
    "batch": Key("size of one fixed batch"),
    "request_count": Key("number of requests"),
    "warmup_count": Key("requests sent and left out before measuring"),
    "prefix_caching": Key("whether prefix caching is on"),
    "has_distinct_prompts": Key("whether no two prompts share a prefix"),
    "spec_tokens_per_step": Key("mean tokens per step with speculative decoding"),
    "is_speculative": Key("whether speculative decoding is on"),
    "usd_per_hour": Key("price of all rented machines, in USD per hour"),
    "weights_gb": Key("size of the weights as loaded, in 10^9 bytes", "weights_gib", "weights_gib"),
    "weights_source": Key("where the size of the weights is from: log, index or device"),
    "slo_quality": Key("lowest score with which a speed may be published"),
}
_BY_NAME = {name: key for key, each in KEYS.items() for name in (key, each.older) if name}


def field_of(name: str, value: Any) -> tuple[str, Any] | None:
    """The field of a claim that this key fills, and its value there; None for an unknown key."""
    key = _BY_NAME.get(name)
    if key is None:
        return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return KEYS[key].field or key, value * _GIB_PER_GB if name == "weights_gb" and is_number else value
