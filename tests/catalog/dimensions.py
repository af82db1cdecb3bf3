"""How many parameters a model has, from its dimensions alone: the catalogue's totals are held against this.

Symbols in comments are those of the usual formulas: V vocabulary, d hidden, h heads, g KV heads, e head size, and for
latent attention c the KV latent, q the query latent.
"""

from bench.catalog.rows import CatalogModel


def param_count(model: CatalogModel) -> int:
    """All parameters: text, vision, and what the catalogue counts beside the formula (norms, biases, an indexer)."""
    d, embeddings = model.hidden, model.vocab * model.hidden * (1 if model.tied else 2)
    dense = (model.layers - model.moe_layers) * 3 * d * model.ffn
    experts = d * model.experts + model.experts * 3 * d * model.moe_ffn + 3 * d * model.shared_ffn
    layers = model.layers * (_attention(model) + 2 * d) + dense + model.moe_layers * experts
    return embeddings + layers + d + model.extra_params + model.vision_params


def matmul_param_count(model: CatalogModel) -> int:
    """Parameters that one token of text is multiplied with: routed experts but the chosen ones left out, lm_head in."""
    idle = model.moe_layers * (model.experts - model.experts_per_tok) * model.expert_params
    lookup = 0 if model.tied else model.vocab * model.hidden  # tied: the one matrix is the lm_head
    return param_count(model) - lookup - idle - model.vision_params


def kv_elements_per_token(model: CatalogModel) -> int:
    """KV elements of one token in all layers, windows left out: keys and values of each head, or one latent."""
    if model.mla_kv_lora:
        return model.layers * (model.mla_kv_lora + (model.mla_rope or 0))
    return 2 * model.layers * model.n_kv_heads * model.head_dim


def _attention(model: CatalogModel) -> int:
    d, h = model.hidden, model.n_heads
    if not model.mla_kv_lora:
        return 2 * d * h * model.head_dim + 2 * d * model.n_kv_heads * model.head_dim
    c, q = model.mla_kv_lora, model.mla_q_lora or 0
    rope, nope, v = model.mla_rope or 0, model.mla_nope or 0, model.mla_v or 0
    query = d * q + q + q * h * (nope + rope) if q else d * h * (nope + rope)
    return query + d * (c + rope) + c + c * h * (nope + v) + h * v * d
