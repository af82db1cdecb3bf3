"""`nightbench reap --everything`, against an emulated account and moto's bucket."""

import json
import os
import pty
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest
from typer.testing import CliRunner, Result

from bench.errors import UsageError
from bench.machine.names import ImageName, MachineName, VolumeName
from flows.cli import app, main
from infra.bootstrap import clouds
from infra.clock import SystemClock
from infra.leases.inventory import Owner, take_inventory
from infra.ledger.ledger import Intent, Ledger
from infra.settings import Settings
from tests.emulators.digitalocean import Emulator
from tests.emulators.digitalocean.faults import FOR_EVER
from tests.emulators.s3 import KEYS, Bucket

PAST, LATER = timedelta(minutes=-1), timedelta(days=3)
MODEL = "org--small/abc"
TEAM = "5df3e3004a17e242b7c20ca6c9fc25b701a47ece"  # of the emulated token
RESULT = "nightbench/runs/2026-03-01T010000Z/night.json"


def machine_name(lease_id: str, after: timedelta) -> str:
    return str(MachineName(lease_id, 1, datetime.now(UTC) + after))


@dataclass
class Account:
    """An account and a bucket with one of everything of ours, and things of others."""

    data: Path
    cloud: Emulator
    bucket: Bucket

    def reap(self, *more: str) -> Result:
        return CliRunner().invoke(app, ["reap", *more])

    def client(self) -> Any:
        return boto3.client("s3", endpoint_url=self.bucket.endpoint, region_name="us-east-1")

    def fill(self) -> None:
        later = datetime.now(UTC) + LATER
        self.cloud.plant_droplet(machine_name("0dead", PAST), foreign=False)
        self.cloud.plant_key(machine_name("0dead", PAST), "ssh-ed25519 AAAA", foreign=False)
        self.cloud.plant_snapshot(str(ImageName("abc123", later)), foreign=False)
        self.cloud.plant_volume(str(VolumeName("abc123", "atl1", later)), foreign=False)
        self.cloud.plant_droplet("somebody-elses")
        self.cloud.plant_key("their key", "ssh-ed25519 BBBB")
        self.cloud.plant_snapshot("their image")
        self.cloud.plant_volume("their-volume")
        for key in (f"models/{MODEL}/manifest.json", f"models/{MODEL}/files/a/00000", RESULT.partition("/")[2]):
            self.client().put_object(Bucket=self.bucket.name, Key=f"nightbench/{key}", Body=b"{}")

    def ours(self) -> dict[str, int]:
        """How many of each sort of ours exist now."""
        state = self.cloud.state
        names = {
            "machines": [one.name for one in self.cloud.living()],
            "keys": [one.name for one in state.keys.values()],
            "images": [one.name for one in state.images.values()],
            "volumes": [one.name for one in state.volumes.values()],
            "models": [key.replace("nightbench/models/", "nb-") for key in self.objects()],
        }
        return {sort: sum(name.startswith("nb-") for name in there) for sort, there in names.items()}

    def objects(self) -> list[str]:
        return [one["Key"] for one in self.client().list_objects_v2(Bucket=self.bucket.name).get("Contents", [])]

    def hold(self) -> None:
        """A night of this very process, whose machine is rented until later."""
        name, until = machine_name("0living", LATER), datetime.now(UTC) + LATER
        self.cloud.plant_droplet(name, foreign=False)
        intent = Intent(
            night="2026-11-22", cloud="digitalocean", usd_per_hour=2.59, expires_at=until, name=name, account=TEAM
        )
        Ledger(self.data / "ledger.sqlite").intend("0living", intent)


ALL = {"machines": 1, "keys": 1, "images": 1, "volumes": 1, "models": 2}
NOTHING = dict.fromkeys(ALL, 0)


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    with Emulator() as cloud, Bucket() as bucket:
        for name, value in {
            **KEYS,
            "NIGHTBENCH_DATA": str(tmp_path / "data"),
            "NIGHTBENCH_DO_TOKEN": cloud.token,
            "NIGHTBENCH_DO_ENDPOINT": cloud.url,
            "NIGHTBENCH_DO_CA": str(cloud.ca),
            "NIGHTBENCH_DO_SETTLE_S": "0.2",
            "NIGHTBENCH_S3_BUCKET": bucket.name,
            "NIGHTBENCH_S3_ENDPOINT": bucket.endpoint,
        }.items():
            monkeypatch.setenv(name, value)
        made = Account(tmp_path / "data", cloud, bucket)
        made.fill()
        yield made


def test_all_that_is_ours_is_shown_with_its_price_and_deleted_and_nothing_of_others(account: Account) -> None:
    assert account.ours() == ALL

    done = account.reap("--everything", "--yes")

    assert (done.exit_code, done.stderr.count("error")) == (0, 0), done.output
    assert "to delete: 5, at 2.59 USD/h and 13.00 USD per month" in done.stdout
    assert account.ours() == NOTHING
    account.cloud.invariant()
    assert account.objects() == [RESULT]
    again = account.reap("--everything")
    assert (again.exit_code, again.stdout.splitlines()[-1]) == (0, "nothing to release")


def test_a_corrupt_ledger_keeps_nothing_of_ours(account: Account) -> None:
    account.data.mkdir(exist_ok=True)
    (account.data / "ledger.sqlite").write_bytes(b"no database" * 100)

    done = account.reap("--everything", "--yes")

    assert done.exit_code == 0, done.output
    assert account.ours() == NOTHING


def test_the_account_of_what_is_ours_is_shown_where_it_is_known(account: Account) -> None:
    account.hold()
    settings = Settings()
    found = take_inventory(Owner(clouds(settings), Ledger(account.data / "ledger.sqlite"), SystemClock(), None))

    listed = json.loads(CliRunner().invoke(app, ["leases", "--json"]).stdout)

    assert {one.account for one in found.owned} == {TEAM}
    assert [row["account"] for row in listed] == [TEAM]


def test_without_a_terminal_and_without_yes_it_lists_and_refuses(account: Account) -> None:
    done = account.reap("--everything")

    assert isinstance(done.exception, UsageError)
    assert "add --yes" in str(done.exception)
    assert MODEL in done.stdout
    assert account.ours() == ALL


def test_a_person_at_a_terminal_is_asked(
    account: Account, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["nightbench", "reap", "--everything"])

    answered = {}
    for answer in "ny":
        person, terminal = pty.openpty()
        os.write(person, f"{answer}\n".encode())
        with os.fdopen(terminal) as stdin:
            monkeypatch.setattr(sys, "stdin", stdin)
            with pytest.raises(SystemExit, match="0"):
                main()
        os.close(person)
        answered[answer] = (account.ours(), "nothing was deleted" in capsys.readouterr().out)

    assert answered == {"n": (ALL, True), "y": (NOTHING, False)}


def test_what_a_running_night_holds_or_may_need_is_named_and_kept_unless_all_is_said(account: Account) -> None:
    account.hold()
    account.cloud.plant_droplet(machine_name("0elsewhere", LATER), foreign=False)
    account.cloud.plant_key(machine_name("0elsewhere", LATER), "ssh-ed25519 CCCC", foreign=False)

    done = account.reap("--everything", "--yes")

    assert done.exit_code == 0, done.output
    assert account.ours() == {"machines": 2, "keys": 1, "images": 1, "volumes": 1, "models": 2}
    kept = [line for line in done.stdout.splitlines() if line.startswith("kept ")]
    assert [line.split()[1] for line in kept] == ["machine", "machine", "key", "volume", "snapshot", "model"]
    assert "a night of another computer may use it until" in kept[0]
    assert "night 2026-11-22 is running on it" in kept[1]

    with_all = account.reap("--everything", "--all", "--yes")

    assert (with_all.exit_code, account.ours()) == (0, NOTHING), with_all.output


def test_what_cannot_be_deleted_is_named_and_keeps_nothing_else(account: Account) -> None:
    account.cloud.fault("DELETE", r"/v2/volumes/.+", phase="status", status=403, times=FOR_EVER)
    account.bucket.fault("denied", method="POST", times=100)

    done = account.reap("--everything", "--yes")

    assert done.exit_code == 3
    assert account.ours() == {**NOTHING, "volumes": 1, "models": 2}
    (volume,) = [one.name for one in account.cloud.state.volumes.values() if one.name.startswith("nb-")]
    assert f"digitalocean volume {volume} was not released: " in done.stderr
    assert f"model {MODEL} was not released: " in done.stderr


def test_a_cloud_that_denies_everything_keeps_its_things_and_the_models_that_its_nights_may_need(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NIGHTBENCH_DO_TOKEN", "dop_v1_wrong")

    done = account.reap("--everything", "--yes")

    assert (done.exit_code, account.ours()) == (3, ALL)
    assert "digitalocean was not listed: " in done.stderr
    assert f"kept model {MODEL}" in done.stdout
