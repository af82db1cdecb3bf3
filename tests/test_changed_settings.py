"""Every setting that tests change has a line in docs/reference/test-settings.md, with a test that runs without it."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "test-settings.md"
NAME = re.compile(r"\b((?:PREFECT|NIGHTBENCH)_[A-Z0-9_]*[A-Z0-9])\b")
SOURCES = sorted(path for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__))
# Where something is and who may use it: the servers, folders, programs and keys of the test itself.
PLACES = re.compile(
    r"PREFECT_(API_URL|API_KEY|HOME|API_DATABASE\w*|SERVER_API_(HOST|PORT))"
    r"|NIGHTBENCH_(HOME|DATA|CACHE|LAKE|LEASE|X|TEST_\w+|\w*TOKEN|\w*KEY|\w+ENDPOINT|\w+_CA|\w+BUCKET|SSH_\w*HOSTS|COMMAND_(CLOUD|API)"
    r"|(DO|COMMAND)_SSH_PORT|SERVICE_PORT|PAGES_(PORT|URL)|NOTIFY_URLS|TRACKER_URL|DATABASE_URL|HEARTBEAT_URL|VLLM\w*|LLAMA_SERVER|LM_EVAL|MACHINE_PYTHON)"
)
NOT_OURS = {
    "GLOBAL_SETTINGS_CONTEXT",
    "CPUS",
    "NUMA_BALANCING",
    "PROC",
    "PROCFS_PATH",
    "HF_TOKEN",
}  # of Prefect, the kernel


def changed_settings() -> set[str]:
    named = {name for path in SOURCES for name in NAME.findall(path.read_text("utf-8"))}
    return {name for name in named if not PLACES.fullmatch(name)}


def changed_constants() -> set[str]:
    """The constants that a test sets by `setattr`."""
    calls = [node for path in SOURCES for node in ast.walk(ast.parse(path.read_text("utf-8")))]
    strings = [
        part.value.rpartition(".")[2]
        for call in calls
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "setattr"
        for part in call.args[:2]
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    ]
    return {name for name in strings if name.isupper()} - NOT_OURS


def lines() -> dict[str, str]:
    """What the page says of each setting and constant."""
    return dict(re.findall(r"^\| `([A-Z0-9_]+)` (\|.*)\|$", PAGE.read_text("utf-8"), re.MULTILINE))


def test_each_setting_that_a_test_changes_has_a_line_and_no_line_is_left_over() -> None:
    assert changed_settings() | changed_constants() == set(lines())


@pytest.mark.parametrize("named", sorted(set(re.findall(r"`(tests/[^`]+)`", PAGE.read_text("utf-8")))))
def test_a_test_that_the_page_names_exists(named: str) -> None:
    file, _, function = named.partition("::")

    assert f"def {function}" in (ROOT / file).read_text("utf-8")


def test_each_line_names_a_test() -> None:
    assert [name for name, line in lines().items() if "`tests/" not in line] == []
