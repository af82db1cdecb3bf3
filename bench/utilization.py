"""What share of a GPU's peaks a rate used: above 1 it was not measured, or not on that GPU.

Rates are of one replica, or of all with their GPUs in `group`. Each share is a lower bound of the true one.
"""

from bench.catalog import CatalogModel, Gpu
from bench.physics import WEIGHT_BYTES, Group, decode_flops, decode_step_bytes, prefill_flops

RECOMPUTATION = 8 / 6  # full activation recomputation does the forward pass twice


def bandwidth_share(model: CatalogModel, group: Group, batch: int, context: float, output_tok_per_s: float) -> float:
    """MBU: bytes that the decode steps read, of those that the memory gives; one token a step and sequence."""
    steps_per_s = output_tok_per_s / batch
    return steps_per_s * decode_step_bytes(model, group, batch, context) / group.bytes_per_s


def compute_share(model: CatalogModel, group: Group, context: float, output_tok_per_s: float) -> float:
    """MFU of the output tokens alone; holds for any batch."""
    return output_tok_per_s * decode_flops(model, context) / group.flops_per_s


def total_compute_share(model: CatalogModel, group: Group, total_tok_per_s: float) -> float:
    """MFU of prompt and output tokens, attention left out."""
    return total_tok_per_s * 2 * model.params_active_matmul / group.flops_per_s


def prefill_share(model: CatalogModel, group: Group, tokens: float, ttft_s: float, hit_share: float = 0.0) -> float:
    """MFU of a lone prompt that had its first token after so long; `hit_share` of it came from the prefix cache."""
    return (1 - hit_share) * prefill_flops(model, tokens) / (group.flops_per_s * ttft_s)


def implied_ttft_s(e2el_s: float, osl: float, tpot_s: float) -> float:
    """TTFT where only totals are published; TPOT is that of the same series' longest answers."""
    return e2el_s - (osl - 1) * tpot_s


def training_flops(model: CatalogModel, tokens: float) -> float:
    """Operations of one token, forward and backward, in sequences of this length, nothing recomputed."""
    return 6 * model.params_active_matmul + 6 * model.layers * model.n_heads * model.head_dim * tokens


def training_share(model: CatalogModel, gpu: Gpu, precision: str, tokens: float, tok_per_s: float) -> float:
    """MFU of one GPU in training; times RECOMPUTATION it is what the hardware did."""
    return tok_per_s * training_flops(model, tokens) / gpu.flops_per_s(precision)


def ridge_batch(gpu: Gpu, precision: str) -> float:
    """The batch above which a dense model's decode is bound by computing, KV left out."""
    return gpu.flops_per_s(precision) * WEIGHT_BYTES[precision] / (2 * gpu.bytes_per_s)
