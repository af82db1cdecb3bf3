"""`nightbench reproduce` at a terminal with a display: here it asks nothing, and the page opens in the end."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.flows.conftest import NightFixture
from tests.flows.deployed import ROOT
from tests.flows.truth_programs import use_truth_programs

pytestmark = [pytest.mark.matrix, pytest.mark.prefect, pytest.mark.timeout(900)]
BROWSER = """#!/bin/sh
echo "$1" >>{opened}
"""


def _at_a_terminal(argv: list[str], environment: dict[str, str]) -> tuple[int, str]:
    """Exit status and output of a command whose reader waits at its terminal."""
    reader, terminal = pty.openpty()
    process = subprocess.Popen(argv, stdin=terminal, stdout=terminal, stderr=terminal, env=environment, cwd=ROOT)
    os.close(terminal)
    shown = b""
    while True:
        try:
            part = os.read(reader, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        shown += part
    os.close(reader)
    return process.wait(), shown.decode(errors="replace")


@pytest.mark.usefixtures("served", "prefect_api")
def test_a_work_in_miniature_is_planned_run_and_its_page_opened(
    house: NightFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_truth_programs(house, monkeypatch)
    opened, browser = tmp_path / "opened", tmp_path / "browser"
    browser.write_text(BROWSER.format(opened=opened))
    browser.chmod(0o755)
    programs = {name: os.environ[name] for name in ("NIGHTBENCH_VLLM_EXECUTABLE", "NIGHTBENCH_LLAMA_SERVER")}
    environment = house.environment | programs | {"DISPLAY": ":9", "BROWSER": f"{browser} %s", "COLUMNS": "200"}

    status, shown = _at_a_terminal(
        [sys.executable, "-m", "flows", "reproduce", "llama-70b-mi300x", "--poc"], environment
    )

    (page,) = (house.data / "reports").glob("*/llama-3.3-70b-mi300x.html")
    assert opened.read_text().splitlines() == [page.absolute().as_uri()], shown
    assert (status, "Run this night?" in shown) in [(0, False), (3, False)], shown
    assert "llama-3.3-70b-mi300x-local on local: 1 runs" in shown
    assert "a miniature on this computer" in page.read_text()
