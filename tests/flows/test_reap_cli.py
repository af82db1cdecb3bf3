"""`nightbench reap` in a process of its own, against an emulated account and the clock on the wall."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bench.errors import UsageError
from bench.machine.names import MachineName
from flows.cli import app
from infra.ledger.lease import NotSearchedError
from infra.ledger.ledger import Intent, Ledger
from tests.emulators.digitalocean import Emulator
from tests.emulators.digitalocean.faults import FOR_EVER
from tests.emulators.messages import webhook

ROOT = Path(__file__).parents[2]
NO_ACCOUNT = {"NIGHTBENCH_DO_TOKEN": "", "NIGHTBENCH_DATA": "data"}  # restored afterwards


@dataclass
class Shell:
    """The command line, with an account in its environment."""

    data: Path
    emulator: Emulator
    environment: dict[str, str] = field(default_factory=dict)

    def reap(self, *more: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        return self.run("reap", *more, **environment)

    def run(self, *words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("NIGHTBENCH_")}
        account = {
            "NIGHTBENCH_DATA": str(self.data),
            "NIGHTBENCH_DO_TOKEN": self.emulator.token,
            "NIGHTBENCH_DO_ENDPOINT": self.emulator.url,
            "NIGHTBENCH_DO_CA": str(self.emulator.ca),
            "NIGHTBENCH_DO_SETTLE_S": "0.4",
        }
        return subprocess.run(
            [sys.executable, "-m", "flows", *words],
            env={**inherited, **account, **environment},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    with Emulator() as emulator:
        emulator.plant_droplet("somebody-elses")
        yield Shell(tmp_path / "data", emulator)


def past_name() -> str:
    return str(MachineName("01k9x", 1, datetime.now(UTC) - timedelta(minutes=1)))


def test_with_nothing_there_is_nothing_to_give_back(shell: Shell) -> None:
    done = shell.reap()

    assert (done.returncode, done.stdout) == (0, "nothing to release\n")


def test_without_any_record_what_is_past_its_time_is_given_back(shell: Shell) -> None:
    machine = shell.emulator.plant_droplet(past_name(), foreign=False)
    shell.emulator.plant_droplet("nb-web")

    done = shell.reap()

    assert (done.returncode, done.stdout) == (0, f"released {machine.droplet_id}\n")
    assert "'nb-web' has our prefix but not our name format" in done.stderr
    assert [one.name for one in shell.emulator.living()] == ["somebody-elses", "nb-web"]


def test_what_cannot_be_given_back_is_an_error_and_not_a_line(shell: Shell) -> None:
    machine = shell.emulator.plant_droplet(past_name(), foreign=False)
    shell.emulator.fault("DELETE", r"/v2/droplets/\d+", phase="status", status=403, times=FOR_EVER)

    done = shell.reap()

    assert done.returncode == 3
    assert "lacks the scope droplet:delete" in done.stderr
    assert str(machine.droplet_id) in done.stderr


@pytest.mark.parametrize("token", ["dop_v1_wrong", " "])
def test_a_wrong_token_is_said_in_a_sentence_and_is_not_shown(shell: Shell, token: str) -> None:
    done = shell.reap(NIGHTBENCH_DO_TOKEN=token)

    assert done.returncode == 3
    assert "The token is wrong or revoked: create one and set NIGHTBENCH_DO_TOKEN" in done.stderr
    assert "Traceback" not in done.stderr
    assert token.strip() not in (done.stdout + done.stderr) or not token.strip()


def test_without_a_token_a_lease_at_that_cloud_is_not_forgotten(shell: Shell) -> None:
    name = past_name()
    intent = Intent(
        night="n",
        cloud="digitalocean",
        usd_per_hour=2.59,
        expires_at=datetime.now(UTC) - timedelta(minutes=1),
        name=name,
    )
    Ledger(shell.data / "ledger.sqlite").intend("01k9x", intent)

    done = shell.reap(NIGHTBENCH_DO_TOKEN="")

    assert done.returncode == 3
    assert "01k9x was not released: no token is set for its cloud 'digitalocean'" in done.stderr


def test_a_row_that_cannot_be_read_is_an_error_and_keeps_nothing_else(shell: Shell) -> None:
    machine = shell.emulator.plant_droplet(past_name(), foreign=False)
    ledger = Ledger(shell.data / "ledger.sqlite")
    ledger.intend("0bad", Intent(night="n", cloud="ssh:me@host:22", usd_per_hour=0.0, expires_at=datetime.now(UTC)))
    with sqlite3.connect(ledger.path) as file:
        file.execute("UPDATE leases SET expires_at = 'tomorrow'")

    done, listed = shell.reap(), shell.run("leases")

    assert (done.returncode, done.stdout) == (3, f"released {machine.droplet_id}\n")
    assert "0bad was not released: lease 0bad in" in done.stderr
    assert "a newer version of Nightbench may have written it" in " ".join(done.stderr.split())
    assert (listed.returncode, "warning: not listed: lease 0bad in" in listed.stderr) == (0, True)


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--all", "--lease", "0123456789ab"], "--all releases every lease and --lease only one: use one of them"),
        (["--everything", "--lease", "0123456789ab"], "--everything releases every lease and --lease only one"),
        (["--yes"], "--yes answers the question of --everything"),
    ],
)
def test_options_that_exclude_each_other_are_refused(argv: list[str], said: str) -> None:
    done = CliRunner().invoke(app, ["reap", *argv])

    assert isinstance(done.exception, UsageError)
    assert said in str(done.exception)


def test_a_lease_without_machines_is_said_to_have_none(shell: Shell) -> None:
    done = shell.reap("--lease", "0123456789ab")

    assert (done.returncode, done.stdout) == (0, "no machine of lease 0123456789ab exists\n")


def test_an_unknown_lease_is_not_said_to_have_no_machine_where_no_cloud_was_searched(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["--data", str(tmp_path), "reap", "--lease", "0123456789ab"], env=NO_ACCOUNT)

    assert (done.exit_code, done.stdout) == (1, "")
    assert isinstance(done.exception, NotSearchedError)
    assert done.exception.exit_code == 3
    assert "no cloud was searched for its machine, because none is set up" in str(done.exception)


def test_a_machine_that_was_not_released_is_not_over_before_its_cloud_was_searched(shell: Shell) -> None:
    machine = shell.emulator.plant_droplet(past_name(), foreign=False)
    with webhook() as hook:
        address = f"json://{hook.url}/"
        refusal = shell.emulator.fault("DELETE", r"/v2/droplets/\d+", phase="status", status=403, times=FOR_EVER)
        shell.reap(NIGHTBENCH_NOTIFY_URLS=address)
        refusal.times = 0
        without_token = shell.reap(NIGHTBENCH_NOTIFY_URLS=address, NIGHTBENCH_DO_TOKEN="")
        titles_without_token = hook.titles
        shell.reap(NIGHTBENCH_NOTIFY_URLS=address)

    assert without_token.returncode == 0
    assert titles_without_token == [f"not released: {machine.droplet_id}"]
    assert hook.titles == [f"not released: {machine.droplet_id}", f"over: not released: {machine.droplet_id}"]
