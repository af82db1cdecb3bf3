"""Every engine that a suite can name is one file of bench/engines."""

from bench.engines import vllm
from bench.engines.by_name import ENGINES, FINISH_REASONS, SAMPLED_NAMES, sample
from bench.suite.engine import Engine


def test_a_suite_without_a_name_of_an_engine_gets_one_that_is_known() -> None:
    assert Engine.model_fields["name"].default in ENGINES


def test_every_engine_samples_named_columns_and_counts_known_finish_reasons() -> None:
    for module in ENGINES.values():
        assert set(sample(module, "")) <= set(SAMPLED_NAMES)
        assert {f"finished_{reason}" for reason in module.FINISH_REASONS} <= set(SAMPLED_NAMES)
        assert set(module.FINISH_REASONS) <= set(FINISH_REASONS)


def test_columns_of_samples_stay_in_the_order_in_which_vllm_gave_them() -> None:
    assert tuple(vllm.SAMPLED) == SAMPLED_NAMES
