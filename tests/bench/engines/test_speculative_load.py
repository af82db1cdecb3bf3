"""A speculating engine gets written prompts, and random tokens only where the suite says that it may."""

import pytest

from bench.engines.speculative_load import with_real_prompts
from bench.errors import SuiteError
from bench.suite.parse import parse_suite
from bench.suite.source import SuiteSource
from bench.suite.suite import Suite

SUITE = """\
name = "small"
[model]
name = "small"
source = "generated:small?seed=0"
[engine]
name = "vllm"
version = "1"
max_model_len = 4096
flags = [{flags}]
[[scenarios]]
name = "one"
isl = 128
osl = 64
concurrency = 1
request_count = 8
{keys}
"""
NGRAM = """"--speculative-config", '{"method": "ngram", "num_speculative_tokens": 3}'"""


def _read(keys: str = "", flags: str = NGRAM) -> Suite:
    text = SUITE.format(flags=flags, keys=keys)
    return with_real_prompts(parse_suite(text, "s.toml"), SuiteSource.of(text, "s.toml"))


@pytest.mark.parametrize(
    ("keys", "kind", "seed"),
    [
        ("", "written", None),
        ("prompts = { seed = 3 }", "written", 3),
        ('prompts = { kind = "written", form = "chat" }', "written", None),
        ("random_speculation = true", "random", None),
        ('driver = "vllm-bench"\nrandom_speculation = true', "random", None),
    ],
)
def test_a_speculating_engine_gets_written_prompts_unless_the_suite_allows_others(
    keys: str, kind: str, seed: int | None
) -> None:
    prompts = _read(keys).scenarios[0].prompts

    assert (prompts.kind, prompts.seed) == (kind, seed)


def test_an_engine_that_does_not_speculate_keeps_random_prompts() -> None:
    assert _read(flags="").scenarios[0].prompts.kind == "random"


@pytest.mark.parametrize(
    "keys",
    [
        'prompts = { kind = "random" }',
        'driver = "vllm-bench"',
        'prompts = { kind = "shared-prefix", groups = 2, prefix_tokens = 16 }',
    ],
)
def test_random_prompts_for_a_speculating_engine_are_refused_with_a_way_out(keys: str) -> None:
    with pytest.raises(SuiteError) as error:
        _read(keys)

    assert str(error.value).startswith("s.toml: scenario one: speculation_on_random_prompts: the engine speculates")
    assert 'prompts.kind = "written", or set random_speculation = true' in str(error.value)
