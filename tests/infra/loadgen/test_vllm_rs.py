"""Where vLLM's Rust client is found, and what is said where it is not."""

from pathlib import Path

import pytest

from bench.errors import LoadDriverError
from infra.loadgen.vllm_rs import find_vllm_rs, vllm_rs_version

PACKAGED = "lib/python3.11/site-packages/vllm/vllm-rs"


def executable(path: Path, says: str = "vllm-rs 0.33.0") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho {says}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An engine's environment without a Rust client, and a PATH that has none."""
    monkeypatch.delenv("NIGHTBENCH_VLLM_RS", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    return executable(tmp_path / "engine" / "bin" / "vllm")


def test_where_there_is_none_it_says_where_to_get_one(engine: Path) -> None:
    with pytest.raises(LoadDriverError, match=r"there is no vllm-rs.*NIGHTBENCH_VLLM_RS"):
        find_vllm_rs(engine)


def test_the_one_on_path_is_found_last_that_of_the_engine_before_it_and_the_named_one_first(
    engine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_path = executable(tmp_path / "path" / "vllm-rs")
    assert find_vllm_rs(engine) == on_path

    packaged = executable(tmp_path / "engine" / PACKAGED)
    assert find_vllm_rs(engine) == packaged

    named = executable(tmp_path / "named")
    monkeypatch.setenv("NIGHTBENCH_VLLM_RS", str(named))
    assert find_vllm_rs(engine) == named


def test_a_named_one_that_cannot_be_run_is_said(engine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    executable(tmp_path / "path" / "vllm-rs")
    monkeypatch.setenv("NIGHTBENCH_VLLM_RS", str(tmp_path / "nowhere"))

    with pytest.raises(LoadDriverError, match=r"nowhere, which cannot be run"):
        find_vllm_rs(engine)


def test_its_version_is_what_it_says(tmp_path: Path) -> None:
    assert vllm_rs_version(executable(tmp_path / "client")) == "0.33.0"
    assert vllm_rs_version(tmp_path / "nowhere") is None
