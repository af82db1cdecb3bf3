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


def test_what_is_counted_beside_the_formula_is_what_is_known_of_each_family() -> None:
    norms = {row.model: 2 * row.head_dim * row.layers for row in read_models() if row.maker == "Qwen"}
    router = {
        row.model: row.experts * row.moe_layers for row in read_models() if row.maker in ("deepseek-ai", "moonshotai")
    }
    gpt = {
        row.model: row.layers * (row.experts * (2 * row.moe_ffn + row.hidden) + 64 * 64 + 2 * 8 * 64 + row.hidden)
        for row in read_models()
        if row.maker == "openai"
    }

    extra = {row.model: row.extra_params for row in read_models() if row.extra_params}

    indexer = extra.pop("DeepSeek-V3.2") - router.pop("DeepSeek-V3.2")
    assert extra == norms | router | gpt
    assert indexer == pytest.approx(0.85e9, rel=0.01)
    assert {row.model for row in read_models() if row.vision_params} == {"Qwen3-VL-235B-A22B", "Kimi-K2.5"}
