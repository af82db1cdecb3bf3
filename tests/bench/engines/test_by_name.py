"""Every engine that a suite can name has a module."""

from typing import get_args

from bench.engines.by_name import ENGINES, EXECUTABLES, FINISH_REASONS, SAMPLED_NAMES
from bench.suite.engine import Engine


def test_every_engine_that_a_suite_can_name_has_a_module_and_an_executable() -> None:
    names = set(get_args(Engine.model_fields["name"].annotation))

    assert set(ENGINES) == set(EXECUTABLES) == names


def test_every_engine_samples_named_columns_and_counts_known_finish_reasons() -> None:
    for module in ENGINES.values():
        assert set(module.sample("")) <= set(SAMPLED_NAMES)
        assert {f"finished_{reason}" for reason in module.FINISH_REASONS} <= set(SAMPLED_NAMES)
        assert set(module.FINISH_REASONS) <= set(FINISH_REASONS)
