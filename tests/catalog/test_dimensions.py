"""The parameters of every model of the catalogue, counted again from its dimensions."""

import pytest

from bench.catalog.rows import CatalogModel
from catalog.read import read_models
from tests.catalog.dimensions import kv_elements_per_token, matmul_param_count, param_count


@pytest.mark.parametrize("model", read_models(), ids=lambda row: row.model)
def test_a_model_has_the_parameters_that_its_dimensions_make(model: CatalogModel) -> None:
    assert param_count(model) == model.params_total
    assert matmul_param_count(model) == model.params_active_matmul
    assert kv_elements_per_token(model) == model.kv_elems_per_token


@pytest.mark.parametrize("model", read_models(), ids=lambda row: row.model)
def test_a_model_has_the_parameters_that_its_maker_says(model: CatalogModel) -> None:
    assert model.params_published is not None
    assert param_count(model) == pytest.approx(model.params_published, rel=0.015)


def test_an_expert_is_three_matrices_and_in_gpt_oss_their_biases() -> None:
    for model in (row for row in read_models() if row.moe_layers):
        biases = 2 * model.moe_ffn + model.hidden if model.maker == "openai" else 0
        assert model.expert_params == 3 * model.hidden * model.moe_ffn + biases


def _norms(row: CatalogModel) -> int:
    """Of queries and keys; Gemma has two more of the hidden size, MiniMax one over all heads."""
    of_heads = 2 * row.head_dim
    if row.maker == "google":
        of_heads = 2 * row.hidden + (of_heads if row.model.startswith("Gemma-3") else 0)
    elif row.maker == "MiniMaxAI":
        of_heads = row.head_dim * (row.n_heads + row.n_kv_heads)
    elif not row.model.startswith(("Qwen3", "GLM-4.")) or row.model.endswith("Air"):
        return 0
    return row.layers * of_heads


_BIASED = ("Qwen2.5", "Qwen2-", "Qwen1.5", "GLM-4", "ChatGLM3")


def _biases(row: CatalogModel) -> int:
    """Of queries, keys and values; gpt-oss has them everywhere."""
    heads = row.head_dim * (row.n_heads + 2 * row.n_kv_heads)
    if row.maker == "openai":
        return row.layers * (row.experts * (2 * row.moe_ffn + row.hidden) + heads + row.hidden)
    return row.layers * heads if row.model.startswith(_BIASED) else 0


def _router(row: CatalogModel) -> int:
    """One bias an expert; the larger V2 has none."""
    has_bias = row.maker in ("deepseek-ai", "moonshotai", "zai-org", "MiniMaxAI") and row.model != "DeepSeek-V2"
    return row.experts * row.moe_layers if has_bias else 0


@pytest.mark.parametrize("model", read_models(), ids=lambda row: row.model)
def test_what_is_counted_beside_the_formula_is_what_is_known_of_each_family(model: CatalogModel) -> None:
    indexer = 0
    if model.sparse_top_k:  # queries of its heads, one key, one weight a head
        heads, size = {"DeepSeek-V3.2": 64, "GLM-5": 32}[model.model], 128
        indexer = model.layers * ((model.mla_q_lora or 0) * heads * size + model.hidden * (size + heads))

    assert model.extra_params == _norms(model) + _biases(model) + _router(model) + indexer


def test_only_two_models_are_counted_with_their_vision_part() -> None:
    assert {row.model for row in read_models() if row.vision_params} == {"Qwen3-VL-235B-A22B", "Kimi-K2.5"}
