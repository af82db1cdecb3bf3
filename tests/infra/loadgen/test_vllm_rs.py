"""Where vLLM's Rust client is found, and the error if there is none."""

from dataclasses import replace
from pathlib import Path

import pytest

from bench.errors import LoadDriverError
from infra.engines.engine_at import EngineAt
from infra.loadgen.vllm_rs import find_vllm_rs, vllm_rs_version

PACKAGED = "lib/python3.11/site-packages/vllm/vllm-rs"


def executable(path: Path, says: str = "vllm-rs 0.33.0") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho {says}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EngineAt:
    """An engine's environment without a Rust client, and a PATH that has none."""
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    return EngineAt(executable(tmp_path / "engine" / "bin" / "vllm"), build=None)


def test_a_missing_client_is_an_error_that_says_where_to_get_one(engine: EngineAt) -> None:
    with pytest.raises(LoadDriverError, match=r"vllm-rs was not found.*NIGHTBENCH_VLLM_RS"):
        find_vllm_rs(engine)


def test_the_named_client_comes_before_the_engines_own_and_that_before_the_one_on_path(
    engine: EngineAt, tmp_path: Path
) -> None:
    on_path = executable(tmp_path / "path" / "vllm-rs")
    assert find_vllm_rs(engine) == on_path

    packaged = executable(tmp_path / "engine" / PACKAGED)
    assert find_vllm_rs(engine) == packaged

    named = executable(tmp_path / "named")
    assert find_vllm_rs(replace(engine, vllm_rs=named)) == named


def test_a_named_client_that_is_not_executable_is_an_error(engine: EngineAt, tmp_path: Path) -> None:
    executable(tmp_path / "path" / "vllm-rs")

    with pytest.raises(LoadDriverError, match=r"NIGHTBENCH_VLLM_RS=.*/nowhere is missing or not executable"):
        find_vllm_rs(replace(engine, vllm_rs=tmp_path / "nowhere"))


def test_the_version_is_the_one_that_the_client_prints(tmp_path: Path) -> None:
    assert vllm_rs_version(executable(tmp_path / "client")) == "0.33.0"
    assert vllm_rs_version(tmp_path / "nowhere") is None
