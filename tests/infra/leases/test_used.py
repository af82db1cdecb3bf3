"""What is billed by time and is ours: volumes, images, and the models in a bucket."""

import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bench.cost.invoice import Used
from infra.bootstrap import spending_of_month
from infra.clouds.local import LocalCloud
from infra.leases.used import kept_costs, models_in_bucket, used_by_models, used_of
from infra.ledger.ledger import Ledger
from infra.ledger.month import NOT_ASKED
from infra.ledger.volumes import VolumeBook
from infra.settings import Settings
from nights.bucket import BucketLocation
from tests.emulators.digitalocean import Emulator
from tests.emulators.virtual_clock import VirtualClock
from tests.infra.rented import Rig

UPLOADED = datetime(2026, 11, 3, 22, 0, tzinfo=UTC)
SPACES = "https://nyc3.digitaloceanspaces.com"


def test_a_model_costs_what_its_bytes_cost_at_spaces_from_its_last_upload_on() -> None:
    objects = [(100 * 1024**3, UPLOADED - timedelta(minutes=9)), (31 * 1024**3, UPLOADED)]

    found = used_by_models({"org--small/abc": objects}, SPACES)

    hourly = 131 * 0.02 / 672  # the catalogue's price of a month, of 672 hours
    assert found == [Used("bucket", None, "org--small/abc", hourly, UPLOADED, None)]


def test_the_models_of_a_bucket_without_a_price_have_none() -> None:
    assert used_by_models({"org--small/abc": [(1, UPLOADED)]}, "http://127.0.0.1:9000") is None
    assert used_by_models({}, "http://127.0.0.1:9000") == []


def test_a_bucket_that_cannot_be_reached_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "tester")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "words")

    used, (unknown,) = models_in_bucket(BucketLocation("nights", "http://127.0.0.1:1", "ours"))

    assert used == []
    assert unknown.startswith("the models that s3://nights/ours at http://127.0.0.1:1 stores are unknown: ")


def test_images_count_to_the_end_of_the_month_and_what_cannot_be_listed_is_named(tmp_path: Path) -> None:
    clock = VirtualClock(tmp_path / "clock", datetime(2026, 11, 29, tzinfo=UTC).timestamp())
    with Emulator(clock) as emulator:
        emulator.plant_snapshot("nb-golden-1", size_gb=50.0, foreign=False)
        rig = Rig(emulator, clock, tmp_path)
        of_account = kept_costs(None, {"digitalocean": rig.cloud}, None, clock.now())
        refused = kept_costs(None, {"digitalocean": rig.cloud_with(token="dop_v1_" + "0" * 64)}, None, clock.now())

    assert of_account.usd == pytest.approx(3.0 / 672 * 48)  # 3 USD a month, of 672 hours, for two days
    assert str(of_account) == "images 0.21 USD to its end"
    assert refused.usd == 0
    assert str(refused).startswith("not counted: the images that digitalocean stores are unknown: ")


@pytest.mark.parametrize("column", ["intended_at", "ended_at"])
@pytest.mark.parametrize("date", ["soon", "2026-11-20", b"\xff"])
def test_a_volume_whose_record_has_an_unreadable_date_is_named_and_the_others_count(
    tmp_path: Path, column: str, date: str | bytes
) -> None:
    path, volumes = tmp_path / "ledger.sqlite", VolumeBook(tmp_path / "ledger.sqlite")
    for name in ("damaged", "whole"):
        volumes.intend("digitalocean", name, 672)
        volumes.mark_made("digitalocean", name, name)
    with sqlite3.connect(path) as file:
        file.execute(f"UPDATE volumes SET {column} = ? WHERE name = 'damaged'", [date])

    kept = spending_of_month(Settings(data=tmp_path), ask=False).kept
    used, unknown = used_of(Ledger(path), volumes, {"digitalocean": LocalCloud(tmp_path / "machines")})

    assert kept.uncounted == ("the cost of volume damaged is unknown: the dates of its record cannot be read",)
    assert [one.name for one in used] == ["whole"]
    assert tuple(unknown) == kept.uncounted


def test_without_a_question_to_the_cloud_the_month_says_what_it_does_not_count(tmp_path: Path) -> None:
    Ledger(tmp_path / "ledger.sqlite").leases()
    set_up = Settings(data=tmp_path, s3_bucket="nights", s3_endpoint="http://127.0.0.1:1")

    assert spending_of_month(set_up, ask=False).kept.uncounted == (NOT_ASKED,)
    assert spending_of_month(Settings(data=tmp_path), ask=False).kept.uncounted == ()
