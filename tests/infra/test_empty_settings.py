"""A variable that is empty is not set: the current folder is no cloud, no authority, and no key."""

from pathlib import Path

import pytest

from infra.settings import Settings

PATHS = ["command_cloud", "do_ca", "ssh_key", "vllm_executable", "deployed_suites"]


@pytest.mark.parametrize("name", PATHS)
def test_an_empty_variable_of_a_path_is_not_the_current_folder(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(f"NIGHTBENCH_{name.upper()}", "")
    assert getattr(Settings(), name) is None

    monkeypatch.setenv(f"NIGHTBENCH_{name.upper()}", "/there")
    assert getattr(Settings(), name) == Path("/there")
