"""A suite that its engine cannot serve is refused with file, line and a way out."""

import pytest

from bench.engines.require import require_engines, weights_of
from bench.errors import SuiteError
from bench.suite.parse import parse_suite
from bench.suite.source import SuiteSource

SUITE = """\
name = "small"
[model]
name = "small"
source = "{source}"
[engine]
name = "{name}"
version = "1"
max_model_len = 4096
{more}
[[scenarios]]
name = "one"
isl = 128
osl = 64
concurrency = 1
request_count = 8
"""
IMAGE = 'install = "container"\nimage = "example/image:1"\n'
GGUF, HF = "generated:small?seed=0&format=gguf", "generated:small?seed=0"


def refused(name: str, source: str = HF, more: str = "", scenario: str = "") -> str:
    text = SUITE.format(name=name, source=source, more=more) + scenario
    with pytest.raises(SuiteError) as error:
        require_engines(parse_suite(text, "s.toml"), SuiteSource.of(text, "s.toml"))
    return str(error.value)


@pytest.mark.parametrize(("name", "source", "more"), [("vllm", HF, ""), ("llama.cpp", GGUF, ""), ("sglang", HF, IMAGE)])
def test_a_suite_that_fits_its_engine_is_accepted(name: str, source: str, more: str) -> None:
    text = SUITE.format(name=name, source=source, more=more)

    require_engines(parse_suite(text, "s.toml"), SuiteSource.of(text, "s.toml"))


def test_an_unknown_engine_is_refused_with_the_names_of_those_that_are_known() -> None:
    assert refused("vlm") == "s.toml:6: engine.name: unknown engine 'vlm': use one of vllm, llama.cpp, sglang, endpoint"


def test_a_flag_of_nightbenchs_own_is_refused_in_the_engine_of_a_scenario_too() -> None:
    said = refused("vllm", scenario='[scenarios.engine]\nflags = ["--max-model-len", "512"]\n')

    assert said.startswith("s.toml: scenario one: engine.flags: --max-model-len is set by Nightbench: remove it")


def test_an_engine_that_is_not_installed_here_needs_an_image() -> None:
    assert "sglang runs in a container only" in refused("sglang")


@pytest.mark.parametrize(
    ("name", "source", "engine", "why"),
    [
        ("llama.cpp", GGUF, "", "llama.cpp runs as one server here: use vllm"),
        (
            "vllm",
            HF,
            'flags = ["--kv-transfer-config", "{}"]\n',
            "--kv-transfer-config is set by Nightbench: remove it",
        ),
        (
            "vllm",
            HF,
            'environment = { HIP_VISIBLE_DEVICES = "0" }\n',
            "remove HIP_VISIBLE_DEVICES from engine.environm",
        ),
    ],
)
def test_an_engine_that_cannot_be_two_servers_is_refused(name: str, source: str, engine: str, why: str) -> None:
    said = refused(name, source, f"{engine}[engine.disaggregated]\n")

    assert said.startswith(f"s.toml:{10 if engine else 9}: engine.disaggregated: ")
    assert why in said


def test_embeddings_are_not_asked_of_two_servers() -> None:
    scenario = '[[scenarios]]\nname = "vectors"\ntask = "embed"\nisl = 8\nconcurrency = 1\nrequest_count = 8\n'

    said = refused("vllm", more="[engine.disaggregated]\n", scenario=scenario)

    assert said == "s.toml: scenario vectors: engine.disaggregated: two servers answer completions only"


@pytest.mark.parametrize("name", ["vllm", "sglang"])
def test_a_gguf_file_is_refused_by_an_engine_that_serves_safetensors(name: str) -> None:
    said = refused(name, "hf:maker/Small-1B-GGUF@main", IMAGE)

    assert f"{name} serves safetensors weights, and model.source = hf:maker/Small-1B-GGUF@main has gguf weights" in said
    assert said.endswith("use llama.cpp, or another source")


def test_safetensors_are_refused_by_llama_cpp() -> None:
    assert "llama.cpp serves gguf weights" in refused("llama.cpp", "hf:maker/Small-1B@main")


def test_a_flag_that_nightbench_sets_is_refused_with_the_key_for_it() -> None:
    said = refused("llama.cpp", GGUF, 'flags = ["-c", "16384"]')

    assert said == (
        "s.toml:9: engine.flags: -c is set by Nightbench: remove it, and use engine.max_model_len, "
        "which is the context of one request"
    )


def test_a_folder_says_nothing_of_its_format() -> None:
    assert weights_of("path:/models/small-gguf") is None
