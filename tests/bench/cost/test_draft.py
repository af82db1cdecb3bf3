"""The memory of what drafts: a draft model's weights and KV cache, one more layer, or nothing."""

import json

import pytest

from bench.cost.draft import draft_gib
from bench.physics import GIB, Group, checkpoint_bytes
from bench.suite.engine import Engine
from catalog.read import find_model, read_catalog

CATALOG = read_catalog()
LARGE, SMALL = find_model("meta-llama/Llama-3.1-70B-Instruct"), find_model("meta-llama/Llama-3.1-8B-Instruct")


def _gib(config: dict[str, object] | None, tokens: float = 0.0) -> float:
    flags = () if config is None else ("--speculative-config", json.dumps(config))
    gpu = CATALOG.gpu("MI300X")
    assert LARGE is not None
    assert gpu is not None
    return draft_gib(Engine(version="1", max_model_len=64, flags=flags), LARGE, Group(gpu, 1, "bf16"), CATALOG, tokens)


def test_n_grams_and_no_speculation_need_no_memory() -> None:
    assert (_gib(None), _gib({"method": "ngram", "num_speculative_tokens": 3})) == (0.0, 0.0)


def test_a_draft_model_takes_its_weights_and_the_kv_cache_of_the_load() -> None:
    assert SMALL is not None
    drafted = {"model": "meta-llama/Llama-3.1-8B-Instruct", "num_speculative_tokens": 3}

    assert _gib(drafted) == pytest.approx(checkpoint_bytes(SMALL, "bf16") / GIB)
    assert _gib(drafted, 1000.0) - _gib(drafted) == pytest.approx(1000 * SMALL.kv_elems_per_token * 2 / GIB)
    assert _gib({"model": "nowhere/unknown", "num_speculative_tokens": 3}) == 0.0


def test_layers_for_several_tokens_are_one_more_layer() -> None:
    assert LARGE is not None
    assert _gib({"method": "mtp"}) == pytest.approx(checkpoint_bytes(LARGE, "bf16") / LARGE.layers / GIB)
