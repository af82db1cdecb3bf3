"""Bytes and operations of a model: what one token costs a GPU at least, and whether a load fits its memory.

Symbols and formulas are those of roofline arithmetic: a decode step reads every weight it uses and every KV entry; a
prefill multiplies every weight with every token. Each result is a bound that no run passes, not a prediction.
"""

import math
import re
from dataclasses import dataclass

from bench.catalog.precisions import GGUF_BYTES, WEIGHT_BYTES
from bench.catalog.rows import CatalogModel, Gpu

GIB = 1 << 30
RESERVED_GIB = 2.0  # a GPU: activations, graphs, context
_WINDOW = re.compile(r"(?P<chunked>chunked )?(?P<tokens>\d+) on (?P<layers>\d+)/(?P<of>\d+) layers")
# A chunk begins empty, so its mean over contexts that pass its end is less than at their mean: never below sqrt(2) - 1
# of its length, if the contexts are evenly spread.
_LEAST_OF_CHUNK = 0.414


@dataclass(frozen=True)
class _Layers:
    """A share of a model's layers, and how far back their attention looks: a window slides, a chunk begins empty."""

    share: float
    limit: float = math.inf  # tokens of the window or of the chunk
    is_chunked: bool = False

    def attended(self, context: float) -> float:
        """Tokens that one at this mean context attends to, at least."""
        if self.is_chunked:
            return min(context % self.limit, _LEAST_OF_CHUNK * self.limit)
        return min(context, self.limit)

    def causal_pairs(self, tokens: float) -> float:
        """Pairs of a token and one that it attends to: half a square, one for each chunk, or a band of the window."""
        if self.is_chunked:
            chunks, rest = divmod(tokens, self.limit)
            return (chunks * self.limit**2 + rest**2) / 2
        return tokens**2 / 2 if tokens <= self.limit else self.limit * tokens - self.limit**2 / 2


@dataclass(frozen=True)
class Group:
    """The GPUs that hold one replica of a model, and how it is kept there."""

    gpu: Gpu
    count: int
    precision: str  # of the weights
    kv_bytes: float = 2.0  # of one KV element
    stages: int = 1  # of a pipeline over them, each with its own layers

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
        """Dense peak of all of them. 4-bit weights with 16-bit activations compute in 16 bits, GGUF's in 16 or 8."""
        if self.precision in GGUF_BYTES:
            return self.count * max(self.gpu.flops_per_s("bf16"), self.gpu.flops_per_s("int8"))
        return self.count * self.gpu.flops_per_s("bf16" if self.precision == "int4" else self.precision)


def checkpoint_bytes(model: CatalogModel, precision: str) -> float:
    """Bytes of the weights, resident or to be downloaded. Embeddings stay in 16 bits where the rest is less.

    Those of a GGUF file are quantised as well.
    """
    weight = WEIGHT_BYTES[precision]
    if weight >= 2 or precision in GGUF_BYTES:  # noqa: PLR2004 - bytes: 16 bits and more
        return model.params_total * weight
    if _has_small_experts(model, precision):
        experts = expert_bytes(model, precision)
        return experts + (model.params_total - experts / weight) * 2
    embeddings = model.vocab * model.hidden * (1 if model.tied else 2)
    return (model.params_total - embeddings) * weight + embeddings * 2


def expert_bytes(model: CatalogModel, precision: str) -> float:
    """Bytes of the routed experts' weights; 0 for a dense model."""
    return model.moe_layers * model.experts * model.expert_params * WEIGHT_BYTES[precision]


def kv_elements(model: CatalogModel, context: float) -> float:
    """KV elements that one sequence of this many tokens holds at least, windows and chunks counted."""
    return model.kv_elems_per_token * sum(part.share * part.attended(context) for part in _layers(model))


def kv_read_bytes(model: CatalogModel, group: Group, context: float) -> float:
    """Bytes that a step reads of one copy of a sequence's KV; sparse attention reads its index and a few entries."""
    whole = kv_elements(model, context) * group.kv_bytes
    if not model.sparse_top_k:
        return whole
    entry = model.kv_elems_per_token * group.kv_bytes
    index = model.layers * (model.index_bytes_per_token or 0)
    return min(whole, min(context, model.sparse_top_k) * entry + context * index)


def kv_copies(model: CatalogModel, group: Group) -> float:
    """How often a group holds the KV of a sequence: heads cannot be cut, and a latent is of all GPUs of a stage."""
    tensor = group.count / group.stages
    return tensor if model.mla_kv_lora else max(1.0, tensor / model.n_kv_heads)


def experts_touched(model: CatalogModel, batch: int) -> float:
    """Experts of a layer that a step of this batch reads in the mean, if routing is uniform: skewed, it is fewer."""
    if not model.experts:
        return 0.0
    return model.experts * (1 - (1 - model.experts_per_tok / model.experts) ** batch)


def step_weight_bytes(model: CatalogModel, group: Group, batch: int) -> float:
    """Bytes of weights that one decode step of a batch reads; embeddings are looked up.

    The lm_head has 16 bits, but in a GGUF file.
    """
    dense = 2.0 if _has_small_experts(model, group.precision) else group.weight_bytes
    head = model.vocab * model.hidden
    own = model.params_active_matmul - head - model.moe_layers * model.experts_per_tok * model.expert_params
    experts = model.moe_layers * experts_touched(model, batch) * model.expert_params
    of_head = group.weight_bytes if group.precision in GGUF_BYTES else 2
    return dense * own + group.weight_bytes * experts + of_head * head


def decode_step_bytes(model: CatalogModel, group: Group, batch: int, context: float) -> float:
    """Bytes that one decode step of a batch reads, at this mean context."""
    kv = batch * kv_read_bytes(model, group, context) * kv_copies(model, group)
    return step_weight_bytes(model, group, batch) + kv


def decode_flops(model: CatalogModel, context: float) -> float:
    """Operations of one output token at this context; a window, a chunk or a sparse pick is all that is attended to."""
    if model.mla_kv_lora:
        width = 2 * model.n_heads * (2 * model.mla_kv_lora + (model.mla_rope or 0))
    else:
        width = 4 * model.n_heads * model.head_dim
    attended = sum(part.share * part.attended(context) for part in _attending(model))
    return 2 * model.params_active_matmul + model.layers * width * attended


def least_flops(model: CatalogModel) -> int:
    """Operations that any token takes at least: its attention left out, and the logits, which a prompt has once."""
    return 2 * (model.params_active_matmul - model.vocab * model.hidden)


def prefill_flops(model: CatalogModel, tokens: float) -> float:
    """Operations of a prompt: causal attention, logits for its last position only."""
    head = model.vocab * model.hidden
    width: float = model.head_dim
    if model.mla_kv_lora:
        width = ((model.mla_nope or 0) + (model.mla_rope or 0) + (model.mla_v or 0)) / 2
    pairs = sum(part.share * part.causal_pairs(tokens) for part in _attending(model))
    return least_flops(model) * tokens + 2 * head + 4 * model.layers * model.n_heads * width * pairs


def training_flops(model: CatalogModel, tokens: float) -> float:
    """Operations of one token, forward and backward, in sequences of this length, nothing recomputed."""
    return 6 * model.params_active_matmul + 6 * model.layers * model.n_heads * model.head_dim * tokens


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
    kv = batch * kv_elements(model, context) * group.kv_bytes * kv_copies(model, group)
    return (checkpoint_bytes(model, group.precision) + kv) / GIB


def _has_small_experts(model: CatalogModel, precision: str) -> bool:
    """Whether only the routed experts are of 4 bits, and the rest of 16: so are the checkpoints of such models."""
    return bool(model.moe_layers) and precision in ("mxfp4", "int4")


def _layers(model: CatalogModel) -> tuple[_Layers, ...]:
    window = _WINDOW.fullmatch(model.attn_window or "")
    if window is None:
        return (_Layers(1.0),)
    share = int(window["layers"]) / int(window["of"])
    return (_Layers(share, float(window["tokens"]), window["chunked"] is not None), _Layers(1 - share))


def _attending(model: CatalogModel) -> tuple[_Layers, ...]:
    return (_Layers(1.0, float(model.sparse_top_k)),) if model.sparse_top_k else _layers(model)
