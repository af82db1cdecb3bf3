"""The GPU memory of what drafts for a model: a draft model's weights and KV cache, or the model's own extra layer."""

from bench.catalog.catalog import Catalog
from bench.catalog.rows import CatalogModel
from bench.engines.speculation import speculation_of
from bench.physics import GIB, Group, checkpoint_bytes
from bench.suite.engine import Engine


def draft_gib(engine: Engine, model: CatalogModel, group: Group, catalog: Catalog, tokens: float = 0) -> float:
    """What speculation adds to one replica that holds `tokens` tokens of context; 0 where it needs no weights.

    A draft model that the catalogue lacks counts as 0: the fit is a bound that no start passes, not a prediction.
    Layers for multi-token prediction count as one more layer of the model.
    """
    asked = speculation_of(engine.flags)
    if asked is None:
        return 0.0
    if asked.is_own_head and not asked.draft_model:
        return checkpoint_bytes(model, group.precision) / model.layers / GIB
    draft = catalog.names.model(asked.draft_model) if asked.draft_model else None
    if draft is None:
        return 0.0
    return (checkpoint_bytes(draft, "bf16") + tokens * draft.kv_elems_per_token * group.kv_bytes) / GIB
