"""`nightbench reproduce` at a terminal: in miniature it asks nothing, at full size once; its page is the end."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from flows.cli import main
from infra.loadgen.suite_lock import read_lock
from tests.flows.conftest import NightFixture
from tests.flows.deployed import ROOT
from tests.flows.nightly_team import CONTROL, working
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


@pytest.mark.usefixtures("prefect_api", "calibrated")
def test_at_full_size_it_pins_shows_the_cost_asks_once_runs_and_reports(
    house: NightFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "llama-3.3-70b-mi300x"
    with working(house, tmp_path, monkeypatch) as team:
        text = (ROOT / "suites" / f"{name}.toml").read_text()
        text = text.replace(f"index.docker.io/{CONTROL}", f"{team.registry.host}/{CONTROL}").replace(
            "osl = 2048", "osl = 16"
        )
        (tmp_path / "suites").mkdir()
        suite = tmp_path / "suites" / f"{name}.toml"
        suite.write_text(text)
        monkeypatch.chdir(tmp_path)
        shown = {}
        for answer in "ny":
            person, terminal = pty.openpty()
            os.write(person, f"{answer}\n".encode())
            argv = ["nightbench", "reproduce", "llama-70b-mi300x", "--target", "digitalocean", "--poc", "--accept-risk"]
            with os.fdopen(terminal) as stdin, monkeypatch.context() as patch:
                patch.setattr(sys, "argv", argv)
                patch.setattr(sys, "stdin", stdin)
                with pytest.raises(SystemExit):
                    main()
            os.close(person)
            shown[answer] = (len(team.account.names()), capsys.readouterr().out)

        (page,) = (house.data / "reports").glob(f"*/{name}.html")
        assert read_lock(suite) is not None
        assert [(count, text.count("Run this night?")) for count, text in shown.values()] == [(0, 1), (1, 1)]
        assert "nothing was started" in shown["n"][1]
        assert "2.59 USD/h" in shown["y"][1]
        assert str(page) in shown["y"][1].replace("\n", "")
        team.account.judge()
