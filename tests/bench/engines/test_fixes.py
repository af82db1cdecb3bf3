"""The fix that a rule names, applied to an engine; after it the rule is kept."""

import pytest

from bench.engines.config import EngineConfig, parallel_sizes, parse_flags
from bench.engines.fixes import applied, describe
from bench.engines.rules import broken_rules
from bench.suite.engine import Engine
from tests.bench.engines.test_rules import CASES, RULES, kimi

WORDS = ("-tp", "8", "--block_size=16", "--kv-offloading-size", "64", "--kv-offloading-backend", "native", "--eager")
ENGINE = Engine(version="0.14.1", max_model_len=4096, flags=WORDS, environment={"A": "1", "NCCL_MIN_NCHANNELS": "112"})


@pytest.mark.parametrize(
    ("step", "flags", "environment", "said"),
    [
        ("--block-size 1", (*WORDS[:2], *WORDS[3:], "--block-size", "1"), ENGINE.environment,
         "--block-size 16 becomes --block-size 1"),
        ("--tensor-parallel-size 4", (*WORDS[2:], "--tensor-parallel-size", "4"), ENGINE.environment,
         "--tensor-parallel-size 8 becomes --tensor-parallel-size 4"),
        ("remove --kv-offloading*", (*WORDS[:3], "--eager"), ENGINE.environment,
         "--kv-offloading-size, --kv-offloading-backend is removed"),
        ("remove NCCL_MIN_NCHANNELS", WORDS, {"A": "1"}, "NCCL_MIN_NCHANNELS is removed"),
        ("A=0", WORDS, ENGINE.environment | {"A": "0"}, "A=1 becomes A=0"),
        ("B=2", WORDS, ENGINE.environment | {"B": "2"}, "B=2 is added"),
        ("--expert", (*WORDS, "--expert"), ENGINE.environment, "--expert is added"),
    ],
)  # fmt: skip
def test_a_step_changes_a_flag_or_a_variable(
    step: str, flags: tuple[str, ...], environment: dict[str, str], said: str
) -> None:
    found = applied(ENGINE, step)

    assert (found.flags, found.environment, describe(ENGINE, step)) == (flags, environment, said)


def _engine(config: EngineConfig) -> Engine:
    words = [word for pair in config.flags.items() for word in pair if word]
    sizes = ("--tensor-parallel-size", str(config.tp_size), "--data-parallel-size", str(config.dp_size))
    return Engine(version=config.version, max_model_len=1, flags=(*sizes, *words), environment=dict(config.environment))


@pytest.mark.parametrize("rule", [name for name, rule in RULES.items() if rule.fix])
def test_after_its_fix_a_rule_is_kept(rule: str) -> None:
    for config in CASES[rule][0]:
        (broken,) = (one for one in broken_rules(config, [RULES[rule]]))
        engine = _engine(config)
        for step in broken.steps:
            engine = applied(engine, step)

        flags = parse_flags(engine.flags)
        mended = EngineConfig(
            config.engine, config.version, config.model, config.gpu, 8, tp_size=parallel_sizes(flags).tp_size,
            flags=flags, environment=engine.environment,
        )  # fmt: skip
        assert broken_rules(mended, [RULES[rule]]) == ()
        assert broken.steps


def test_64_heads_on_eight_gpus_go_on_four() -> None:
    (broken,) = broken_rules(kimi(tp_size=8), [RULES["mla_heads_per_gpu"]])

    assert broken.steps == ("--tensor-parallel-size 4",)
