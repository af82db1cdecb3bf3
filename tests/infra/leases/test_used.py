"""What is billed by time and is ours: the models in a bucket."""

from datetime import UTC, datetime, timedelta

import pytest

from bench.cost.invoice import Used
from infra.leases.used import models_in_bucket, used_by_models
from nights.bucket import BucketLocation

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
