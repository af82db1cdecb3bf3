"""The README's tour: its very commands, typed one after another in a folder like a fresh checkout."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.flows.conftest import NightFixture
from tests.flows.demos import plant_demo
from tests.flows.deployed import ROOT

pytestmark = pytest.mark.prefect
STEP = re.compile(r"^```bash\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINKED = ("suites", "tests")
# What is judged on a busy host may be rejected, and the example of another tool is rejected: then the exit code is 1.
JUDGES = re.compile(r"nightbench (run|audit) ")
RESULT_COLUMNS = {"scenario", "repeat", "verdict", "ttft_p50_ms", "tpot_p50_ms"}
SEEN = {
    "demo": {"real", "questions", "sql"},
    "doctor": {"python", "engine", "leases"},
    "plan": {"scenario_id", "repeat", "load", "requests"},
    "run": {"verdict", "report:"},
    "audit": {"rejected", "FAIL", "checkable:"},
    "leases": {"released", "usd"},
    "rebuild": {"loaded"},
    "report": {"html"},
}


def tour() -> list[str]:
    """The commands of the tour, in order."""
    _, _, text = (ROOT / "README.md").read_text("utf-8").partition("\n## A ten-minute tour\n")
    steps = STEP.findall(text.partition("\n## ")[0])
    return [command for step in steps for command in step.strip().splitlines()]


def words_to_see(command: str) -> set[str]:
    """What the README says a command shows."""
    found = re.search(r"nightbench (\w+)", command)
    if found is None:
        return set()
    if found[1] == "sql":
        return RESULT_COLUMNS if "FROM results" in command else {"code", "status", "observed", "message"}
    return SEEN[found[1]]


def type_in(command: str, folder: Path, environment: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    """Run a command as a reader would: in a shell, in the checkout."""
    argv = ["bash", "-c", command]
    return subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def checkout(house: NightFixture) -> Path:
    """A folder with the environment, the suites, the example files and the demo of a checkout, and no data yet."""
    folder = house.data.parent / "checkout"
    folder.mkdir()
    plant_demo(folder, is_simulated=False)
    (folder / ".venv").symlink_to(sys.prefix)
    for name in LINKED:
        (folder / name).symlink_to(ROOT / name)
    return folder


def test_every_command_of_the_tour_works_and_shows_what_the_readme_says(
    house: NightFixture, server_url: str, checkout: Path
) -> None:
    environment = {**house.environment, "PREFECT_API_URL": server_url}
    del environment["NIGHTBENCH_DATA"]
    commands = tour()
    shown: dict[str, str] = {}

    for command in commands:
        done = type_in(command, checkout, environment)
        allowed = {0, 1} if JUDGES.search(command) else {0}
        assert done.returncode in allowed, (command, done.stdout, done.stderr)
        assert words_to_see(command) <= set(re.findall(r"[\w:]+", done.stdout)), (command, done.stdout)
        assert shown.setdefault(command, done.stdout) == done.stdout, command

    assert len(commands) > len(shown)  # one query comes twice: before the rebuild and after it
    assert (checkout / "data" / "warehouse.duckdb").is_file()
