"""What a host of one's own must have, as its suite asks for it."""

from pathlib import Path
from typing import Any

import pytest

from bench.cost.host_requirements import needs_of
from bench.suite.parse import parse_suite
from bench.suite.suite import Suite
from catalog.read import read_catalog

FILE = Path(__file__).parents[3] / "suites" / "llama-3.3-70b-mi300x.toml"
SUITE = parse_suite(FILE.read_text(), FILE.name)
LOCAL = parse_suite(FILE.with_name("local.toml").read_text(), "local.toml")


def _needed(suite: Suite) -> dict[str, str]:
    return {need.what: need.needed for need in needs_of(suite, read_catalog())}


def _with_model(**changes: Any) -> Suite:
    return SUITE.model_copy(update={"model": SUITE.model.model_copy(update=changes)})


def test_gpus_docker_and_room_for_the_weights_are_asked_for_where_the_suite_needs_them() -> None:
    needed = _needed(SUITE)

    assert needed["GPUs"].startswith("1 x MI300X")
    assert "vllm/vllm-openai-rocm:v0.32.0 is pulled" in needed["docker"]
    # 70.55 billion weights of two bytes and a twentieth, in the folder where models go.
    assert needed["disk"] == "148 GB free in nightbench/data/models of the user's home"


def test_a_suite_for_the_cpu_needs_neither_gpus_nor_room() -> None:
    assert set(_needed(LOCAL)) == {"vllm 0.32.0", "load client"}


@pytest.mark.parametrize(
    ("changes", "what", "needed"),
    [
        ({"cache": "/models"}, "disk", "148 GB free in /models"),
        ({"source": "hf:nobody/unheard-of@main"}, "disk", "space for the weights in"),
        ({"source": "path:/models/llama"}, "model", "the folder /models/llama must exist"),
    ],
)
def test_where_the_model_is_from_says_what_the_disk_must_have(changes: dict[str, Any], what: str, needed: str) -> None:
    assert _needed(_with_model(**changes))[what].startswith(needed)
