"""A skip that nobody allowed fails a session in CI, with its name and its reason."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.skips import is_allowed

ROOT = Path(__file__).parents[1]
CONFTEST = """
from tests.skips import guard_skips
def pytest_configure(config):
    guard_skips(config)
"""


def session(folder: Path, reason: str, ci: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """A session of pytest over one skipped test and one that passes."""
    (folder / "conftest.py").write_text(CONFTEST)
    text = f"import pytest\ndef test_a(): pytest.skip({reason!r})\ndef test_b(): pass\n"
    (folder / "test_one.py").write_text(text)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", folder, folder, *arguments],
        env={**os.environ, "CI": ci, "PYTHONPATH": str(ROOT)},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("arguments", [(), ("--numprocesses=1",)])
def test_a_skip_outside_the_list_fails_a_session_in_ci_and_is_named(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = session(tmp_path, "the moon is full", "true", *arguments)

    assert done.returncode == 1
    assert (
        "test_one.py::test_a was skipped (the moon is full), which tests/skips.py does not allow in CI" in done.stdout
    )


@pytest.mark.parametrize(("reason", "ci"), [("no Chromium: install it", "true"), ("the moon is full", "")])
def test_an_allowed_skip_and_a_skip_outside_ci_fail_nothing(tmp_path: Path, reason: str, ci: str) -> None:
    assert session(tmp_path, reason, ci).returncode == 0


@pytest.mark.parametrize(
    ("reason", "is_so"),
    [
        ("Skipped: ../shared/data/published is not here", True),
        ("Skipped: ../shared/data/samples is not here", False),
        ("claims.csv of the shared tables is not here", False),
        ("Skipped: /x/llama-server is not built: `make engines` builds it in 6 minutes of CPU time", True),
        ("only Linux stamps packets for us", False),
        ("", False),
    ],
)
def test_a_reason_is_allowed_by_the_list_only(reason: str, is_so: bool) -> None:
    assert is_allowed(reason) is is_so
