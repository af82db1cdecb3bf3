"""Which of its engine's rules a suite breaks, on the machine that it would be measured on."""

from collections.abc import Iterable

from bench.catalog.rows import CatalogModel, Gpu
from bench.engines.config import EngineConfig, parallel_sizes, parse_flags
from bench.engines.disaggregated import rank_count
from bench.engines.rules import BrokenRule, EngineRule, broken_rules
from bench.suite.suite import Suite


def suite_breaks(
    suite: Suite, model: CatalogModel | None, gpu: Gpu | None, gpu_count: int | None, rules: Iterable[EngineRule]
) -> tuple[BrokenRule, ...]:
    """Every rule that it breaks; a rule with an unknown input is not broken."""
    return broken_rules(config_of(suite, model, gpu, gpu_count), rules)


def config_of(suite: Suite, model: CatalogModel | None, gpu: Gpu | None, gpu_count: int | None) -> EngineConfig:
    """How a suite starts its engine."""
    flags = parse_flags(suite.engine.flags)
    sizes = parallel_sizes(flags)
    return EngineConfig(
        engine=suite.engine.name,
        version=suite.engine.version,
        model=model,
        gpu=gpu,
        gpu_count=gpu_count,
        precision=suite.model.precision,
        checkpoint=suite.model.source.removeprefix("hf:").partition("@")[0],
        max_model_len=suite.engine.max_model_len,
        tp_size=sizes.tp_size,
        pp_size=sizes.pp_size,
        dp_size=sizes.dp_size,
        rank_count=rank_count(suite.engine),
        flags=flags,
        environment=suite.engine.environment,
    )
