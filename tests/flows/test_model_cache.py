"""Whole nights whose model is kept in a bucket: moto's server, an emulated hub, and rented machines that are sshds."""

import json
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest

from bench.errors import NightbenchError
from flows.nightly import nightly
from flows.prepare import prepare
from infra.leases.listing import stored_models
from infra.settings import Settings
from infra.storage.bucket import require_bucket_location
from tests.emulators.hub import HubEmulator
from tests.emulators.s3 import KEYS, Bucket
from tests.flows.conftest import NightFixture, run_nightly
from tests.flows.renting import Account, renting
from tests.infra.models.tiny import copy_tiny_model
from tests.pairs import IS_SOAK
from tests.planted import SECRETS, Watch, found_below, found_in, plant
from warehouse.lake.query import run_sql

pytestmark = [pytest.mark.prefect]
WEIGHTS = "model.safetensors"
PLANTED = ("HF_TOKEN", "AWS_SECRET_ACCESS_KEY")


@dataclass
class Street:
    """A house, a hub and a bucket; the suite asks for the hub's model, kept in the bucket."""

    house: NightFixture
    hub: HubEmulator
    bucket: Bucket

    def keep(self, minutes: int = 5) -> None:
        text = self.house.suite.read_text()
        hubs = f'source = "hf:org/small@{self.hub.sha}"\ncache_bucket_minutes = {minutes}'
        self.house.suite.write_text(text.replace('source = "generated:tiny?seed=0"', hubs, 1))

    def client(self) -> Any:
        return boto3.client("s3", endpoint_url=self.bucket.endpoint, region_name="us-east-1")

    def keys(self, ending: str = "") -> list[str]:
        listed = self.client().list_objects_v2(Bucket=self.bucket.name).get("Contents", [])
        return [one["Key"] for one in listed if one["Key"].endswith(ending)]

    def delete(self, key: str) -> None:
        self.client().delete_object(Bucket=self.bucket.name, Key=key)

    def origins(self) -> list[str | None]:
        """Where the weights of each run came from, oldest night first."""
        records = sorted(self.house.data.glob("runs/*/*/*/record.json"))
        return [json.loads(path.read_bytes())["weights"]["origin"] for path in records]


@pytest.fixture
def street(house: NightFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Street]:
    copy_tiny_model(tmp_path / "repository")
    with HubEmulator(tmp_path / "repository") as hub, Bucket() as bucket:
        settings = {
            "NIGHTBENCH_HUB_ENDPOINT": hub.url,
            "NIGHTBENCH_S3_BUCKET": bucket.name,
            "NIGHTBENCH_S3_ENDPOINT": bucket.endpoint,
            **KEYS,
            "HF_HOME": str(tmp_path / "hf-home"),
        }
        for name in ("AWS_PROFILE", "HF_TOKEN", "NIGHTBENCH_HF_TOKEN", "HF_HUB_OFFLINE"):
            monkeypatch.delenv(name, raising=False)
            house.environment.pop(name, None)
        for name, value in settings.items():
            monkeypatch.setenv(name, value)
        house.environment.update(settings)
        yield Street(house, hub, bucket)


@pytest.fixture
def account(street: Street, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    with renting(tmp_path, street.house) as account:
        for name, value in account.settings.items():
            monkeypatch.setenv(name, value)
        street.keep()
        yield account


@pytest.mark.usefixtures("prefect_api", "calibrated")
def test_the_first_night_fills_the_bucket_and_the_second_never_asks_the_hub_for_weights(
    street: Street, account: Account, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch, *PLANTED)
    secrets = {name: SECRETS[name] for name in PLANTED} | {"a presigned address": "X-Amz-Signature"}

    with Watch(secrets, tmp_path / "no keys") as watch:
        first = run_nightly(street.house, "digitalocean")

    assert sum(first.verdicts.values()) == 2
    assert street.hub.gets(WEIGHTS)
    assert {one.token for one in street.hub.requests} == {SECRETS["HF_TOKEN"]}
    assert watch.in_argv == set()
    assert watch.holders <= {("HF_TOKEN", "prepare"), ("HF_TOKEN", "download")}
    assert street.keys("manifest.json") == [f"nightbench/models/org--small/{street.hub.sha}/manifest.json"]
    street.hub.requests.clear()

    second = run_nightly(street.house, "digitalocean")

    assert sum(second.verdicts.values()) == 2
    assert [one for one in street.hub.requests if "/resolve/" in one.path] == []
    told = street.origins()
    assert [origin and origin.startswith("from the hub: s3://nights") for origin in told[:2]] == [True, True]
    assert told[2:] == ["from the bucket"] * 2
    filled = run_sql(street.house.data, "SELECT count(*), sum(usd) > 0 FROM stages WHERE stage = 'cache'").rows
    assert list(map(tuple, filled)) == [(1, True)]  # only the night that filled it paid for that
    account.judge()
    (stored,) = stored_models(require_bucket_location(Settings()))
    location = f"s3://nights/nightbench at {street.bucket.endpoint}"
    assert stored.description.startswith(f"{location} stores org--small/{street.hub.sha}")
    assert stored.usd_per_month is None  # the catalogue has no price of this bucket
    assert found_in(caplog.text.encode(), secrets) == set()
    assert found_below(street.house.data, secrets) == {}
    assert found_below(tmp_path / "droplets", secrets) == {}


@pytest.mark.usefixtures("prefect_api")
def test_preparing_a_suite_stores_its_model_in_the_bucket(street: Street, account: Account, tmp_path: Path) -> None:
    manifest = f"nightbench/models/org--small/{street.hub.sha}/manifest.json"

    image = prepare(suite=str(street.house.suite))
    assert street.keys("manifest.json") == [manifest]
    assert list((tmp_path / "droplets" / "snapshots").glob(f"**/{WEIGHTS}")) == []  # the image has no model
    assert prepare(suite=str(street.house.suite)) == image
    assert len(account.names()) == 1
    if IS_SOAK:  # one more machine
        street.delete(manifest)
        assert prepare(suite=str(street.house.suite)) == image
        assert street.keys("manifest.json") == [manifest]
        assert len(account.names()) == 2
    account.judge(*(one.name for one in account.emulator.ledger() if one.kind == "snapshot"))


@pytest.mark.usefixtures("prefect_api", "calibrated")
def test_a_bucket_that_vanishes_costs_a_sentence_in_the_record(
    street: Street, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    street.keep()
    monkeypatch.setenv("NIGHTBENCH_S3_ENDPOINT", "http://127.0.0.1:1")  # nobody listens there
    monkeypatch.setenv("NIGHTBENCH_S3_PATIENCE_S", "1")

    summary = run_nightly(street.house)

    assert sum(summary.verdicts.values()) == 2
    assert all(origin and "could not be reached" in origin for origin in street.origins())
    assert "the model is not cached in the bucket: " in caplog.text


@pytest.mark.usefixtures("prefect_api")
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"NIGHTBENCH_S3_BUCKET": ""}, "no bucket is set: set NIGHTBENCH_S3_BUCKET"),
        ({"NIGHTBENCH_S3_BUCKET": "none-such"}, "the bucket does not exist: create it"),
        ({"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}, "no keys were found"),
        ({"denied": "yes"}, "the keys are wrong or may not write to it"),
    ],
)
def test_a_bucket_that_cannot_be_used_is_a_sentence_before_anything_is_rented(
    street: Street, account: Account, monkeypatch: pytest.MonkeyPatch, wrong: dict[str, str], said: str
) -> None:
    if "denied" in wrong:
        street.bucket.fault("denied", method="GET")
    else:
        for name, value in wrong.items():
            monkeypatch.setenv(name, value)

    with pytest.raises(NightbenchError, match=said) as refused:
        nightly(suite=str(street.house.suite), target="digitalocean")

    assert refused.value.exit_code == 2
    assert account.names() == []


@pytest.mark.usefixtures("served", "prefect_api", "calibrated", "nights_without_prefect")
def test_a_night_that_is_killed_while_it_uploads_leaves_no_model_and_the_next_goes_on(street: Street) -> None:
    street.keep()
    street.bucket.fault("silence", path=rf"files/{WEIGHTS}", times=1, seconds=600)

    night = street.house.start("run", str(street.house.suite), "--poc")
    until = time.monotonic() + 300
    while not street.keys("/tokenizer.json/00000"):  # the small ones are there, the weights are on their way
        assert time.monotonic() < until, "nothing was uploaded"
        assert night.poll() is None
        time.sleep(0.5)
    os.killpg(night.pid, signal.SIGKILL)
    night.communicate()

    assert street.keys("manifest.json") == []
    street.bucket.relent()
    done = street.house.call("run", str(street.house.suite), "--poc")
    assert street.keys("manifest.json"), done.stderr
    assert street.house.leftovers() == []
