"""Bytes and operations of a model: what one token costs a GPU at least, and whether a load fits its memory.

Symbols and formulas are those of roofline arithmetic: a decode step reads every weight it uses and every KV entry; a
prefill multiplies every weight with every token. Each result is a bound that no run passes, not a prediction.
"""

import re
from dataclasses import dataclass

from bench.catalog import CatalogModel, Gpu

GIB = 1 << 30
RESERVED_GIB = 2.0  # a GPU: activations, graphs, context
# Scales included: MXFP4 has 8 bits for 32 weights, NVFP4 8 for 16; INT4 as if its group were 16, where it is unknown.
# FP4 that does not say of which kind it is has no scales: less than it can be, so that its bounds hold.
WEIGHT_BYTES = {
    "fp32": 4.0, "bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "int8": 1.0,
    "mxfp4": 0.53125, "nvfp4": 0.5625, "fp4": 0.5, "int4": 0.5625,
}  # fmt: skip
_WINDOW = re.compile(r"(?:chunked )?(?P<tokens>\d+) on (?P<layers>\d+)/(?P<of>\d+) layers")


@dataclass(frozen=True)
class Group:
    """The GPUs that hold one replica of a model, and how it is kept there."""

    gpu: Gpu
    count: int
    precision: str  # of the weights
    kv_bytes: float = 2.0  # of one KV element

    @property
    def weight_bytes(self) -> float:
        """Bytes of a weight, scales included."""
        return WEIGHT_BYTES[self.precision]

    @property
    def bytes_per_s(self) -> float:
        """Peak bandwidth of all of them."""
        return self.count * self.gpu.bytes_per_s

    @property
    def flops_per_s(self) -> float:
        """Dense peak of all of them. 4-bit weights with 16-bit activations compute in 16 bits."""
        return self.count * self.gpu.flops_per_s("bf16" if self.precision == "int4" else self.precision)


def checkpoint_bytes(model: CatalogModel, precision: str) -> float:
    """Bytes of the weights, resident or to be downloaded. Embeddings stay in 16 bits where the rest is less."""
    weight = WEIGHT_BYTES[precision]
    if weight >= 2:  # noqa: PLR2004 - bytes: 16 bits and more
        return model.params_total * weight
    if model.moe_layers and precision in ("mxfp4", "int4"):  # only the routed experts are of 4 bits
        experts = model.moe_layers * model.experts * model.expert_params
        return experts * weight + (model.params_total - experts) * 2
    embeddings = model.vocab * model.hidden * (1 if model.tied else 2)
    return (model.params_total - embeddings) * weight + embeddings * 2


def kv_elements(model: CatalogModel, context: float) -> float:
    """KV elements that one sequence of this many tokens holds, windows counted."""
    window = _WINDOW.fullmatch(model.attn_window or "")
    if window is None:
        return model.kv_elems_per_token * context
    share = int(window["layers"]) / int(window["of"])
    held = min(context, int(window["tokens"]))
    return model.kv_elems_per_token * (share * held + (1 - share) * context)


def _kv_copies(model: CatalogModel, group: Group) -> float:
    """How often a group holds the KV of a sequence: heads cannot be cut."""
    return group.count if model.mla_kv_lora else max(1.0, group.count / model.n_kv_heads)


def decode_step_bytes(model: CatalogModel, group: Group, batch: int, context: float) -> float:
    """Bytes that one decode step of a batch reads, at this mean context."""
    dense = group.weight_bytes if not (model.moe_layers and group.precision in ("mxfp4", "int4")) else 2.0
    touched = model.experts * (1 - (1 - model.experts_per_tok / model.experts) ** batch) if model.experts else 0.0
    own = model.params_active_matmul - model.vocab * model.hidden
    own -= model.moe_layers * model.experts_per_tok * model.expert_params
    weights = dense * own + group.weight_bytes * model.moe_layers * touched * model.expert_params
    weights += 2 * model.vocab * model.hidden
    return weights + batch * kv_elements(model, context) * group.kv_bytes * _kv_copies(model, group)


def decode_flops(model: CatalogModel, context: float) -> float:
    """Operations of one output token at this context."""
    if model.mla_kv_lora:
        attention = 2 * model.layers * model.n_heads * (2 * model.mla_kv_lora + (model.mla_rope or 0))
    else:
        attention = 4 * model.layers * model.n_heads * model.head_dim
    return 2 * model.params_active_matmul + attention * context


def prefill_flops(model: CatalogModel, tokens: float) -> float:
    """Operations of a prompt: causal attention, logits for its last position only."""
    head = model.vocab * model.hidden
    width: float = model.head_dim
    if model.mla_kv_lora:
        width = ((model.mla_nope or 0) + (model.mla_rope or 0) + (model.mla_v or 0)) / 2
    attention = 2 * model.layers * model.n_heads * width * tokens**2
    return 2 * (model.params_active_matmul - head) * tokens + 2 * head + attention


def least_step_s(model: CatalogModel, group: Group, batch: int, context: float) -> float:
    """Seconds that a decode step takes at least: what it reads, or what it computes."""
    read_s = decode_step_bytes(model, group, batch, context) / group.bytes_per_s
    return max(read_s, batch * decode_flops(model, context) / group.flops_per_s)


def least_ttft_s(model: CatalogModel, group: Group, tokens: float) -> float:
    """Seconds that a lone prompt takes at least; one that is short still reads every weight."""
    return max(prefill_flops(model, tokens) / group.flops_per_s, least_step_s(model, group, 1, tokens))


def room_gib(group: Group, utilization: float = 0.9) -> float:
    """Memory that weights and KV may take."""
    return group.count * (group.gpu.mem_gib_device * utilization - RESERVED_GIB)


def needed_gib(model: CatalogModel, group: Group, batch: int, context: float) -> float:
    """Memory that the weights and the KV of a batch of whole requests take."""
    kv = batch * kv_elements(model, context) * group.kv_bytes * _kv_copies(model, group)
    return (checkpoint_bytes(model, group.precision) + kv) / GIB
