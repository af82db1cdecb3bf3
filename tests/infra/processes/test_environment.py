import ast
import os
from pathlib import Path

import pytest

from infra.engines.venv import find_uv
from infra.processes import environment as environments
from infra.processes.command import run_tool
from infra.processes.environment import INSTALLERS, child_environment, installer_environment, use_no_proxy_here
from tests.planted import found_in, plant

ROOT = Path(__file__).parents[3]


def test_a_child_gets_what_programs_need_and_no_credential(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    needed = {"LC_ALL": "C", "CUDA_VISIBLE_DEVICES": "1", "ROCR_VISIBLE_DEVICES": "2", "VLLM_LOGGING_LEVEL": "INFO"}
    for name, value in needed.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("SOMEBODYS_SETTING", "1")

    environment = child_environment()

    assert needed.items() <= environment.items()
    assert {"PATH", "HOME"} <= environment.keys()
    assert "SOMEBODYS_SETTING" not in environment
    assert found_in(repr(environment).encode()) == set()


def test_what_a_child_is_given_on_purpose_it_gets_whatever_its_name() -> None:
    given = {"HF_TOKEN": "hf_1"}

    assert given.items() <= child_environment(given).items()


def test_an_installer_gets_its_own_credentials_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    for name in ("UV_INDEX_OURS_PASSWORD", "UV_PUBLISH_TOKEN", "UV_FIND_LINKS"):
        monkeypatch.setenv(name, "1")

    environment = child_environment(also=INSTALLERS)

    assert {name for name in environment if name.startswith("UV_")} >= {"UV_INDEX_OURS_PASSWORD", "UV_FIND_LINKS"}
    assert "UV_PUBLISH_TOKEN" not in environment
    assert found_in(repr(environment).encode()) == {"https_proxy"}


def test_uv_trusts_the_authorities_of_this_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("UV_SYSTEM_CERTS", "UV_NATIVE_TLS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(environments, "SYSTEM_BUNDLES", (str(tmp_path / "ca.crt"),))
    assert "UV_SYSTEM_CERTS" not in installer_environment()  # without a bundle it would trust no one

    (tmp_path / "ca.crt").touch()
    assert installer_environment()["UV_SYSTEM_CERTS"] == "true"

    monkeypatch.setenv("UV_SYSTEM_CERTS", "false")
    assert installer_environment()["UV_SYSTEM_CERTS"] == "false"


def test_the_pinned_uv_has_the_setting() -> None:
    shown = run_tool([find_uv(), "help", "pip", "install"], timeout_s=300).out

    assert "UV_SYSTEM_CERTS" in shown


@pytest.mark.parametrize(
    ("proxy", "before", "after"),
    [
        ("HTTPS_PROXY", "", "127.0.0.1,localhost,::1"),
        ("http_proxy", "corp.example, localhost", "corp.example,localhost,127.0.0.1,::1"),
        ("UNRELATED", "corp.example", "corp.example"),
    ],
)
def test_no_request_to_this_computer_goes_through_a_proxy(
    monkeypatch: pytest.MonkeyPatch, proxy: str, before: str, after: str
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv(proxy, "http://proxy.example:3128")
    monkeypatch.setenv("NO_PROXY", before)

    use_no_proxy_here()

    assert os.environ["NO_PROXY"] == after


def test_a_tool_inherits_no_secret_but_its_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    monkeypatch.setenv("DOCKER_HOST", "unix:///somewhere")

    out = run_tool(["env"], timeout_s=300).out

    assert "DOCKER_HOST=unix:///somewhere\n" in out
    assert found_in(out.encode()) == {"https_proxy"}


def test_every_program_that_infra_starts_is_given_its_environment() -> None:
    started = [
        (f"{path.relative_to(ROOT)}:{node.lineno}", {keyword.arg for keyword in node.keywords})
        for path in sorted((ROOT / "infra").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("subprocess.Popen", "subprocess.run")
    ]

    assert len(started) > 5
    assert [place for place, keywords in started if "env" not in keywords] == []
