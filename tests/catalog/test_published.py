"""Published numbers are as they were printed, and prices are of named days."""

import csv
from collections import Counter
from datetime import date
from pathlib import Path

import pytest

from catalog.read import read_catalog, read_gpus, read_prices, read_published
from tests.catalog import transcribed
from tests.warehouse.importers.reading import SHARED, at_hand
from warehouse.suite_report.published_rows import SEEDS

# As it lies in the catalogue, and as it was transcribed where that is at hand.
TABLES = [SEEDS, *at_hand(SHARED / "published/seeds.csv")]


def test_every_number_of_the_five_sources_is_there() -> None:
    assert Counter(row.source for row in read_published()) == {
        "seed0_runara": 45,
        "seed1_amd_performance_results": 73,
        "seed2_amd_llama4_blog": 17,
        "seed3_news_georgiou": 14,
        "seed4_rocm_deepdive_blog": 63,
    }


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.name)
def test_a_published_number_is_read_as_it_was_transcribed(path: Path) -> None:
    with path.open(encoding="utf-8", newline="") as file:
        theirs = [{name: cell or None for name, cell in row.items()} for row in csv.DictReader(file)]

    assert [vars(row) for row in read_published()] == theirs


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.name)
def test_every_published_number_that_was_transcribed_is_unchanged(path: Path) -> None:
    published = transcribed.recorded()["published"]

    assert transcribed.digests(path, published["columns"]) == published["rows"]


def test_the_first_published_number_is_the_report_that_the_suite_repeats() -> None:
    row = read_published()[0]

    assert (row.model, row.isl, row.osl, row.value, row.unit) == (
        "meta-llama/Llama-3.3-70B-Instruct",
        "128",
        "2048",
        "33.1",
        "tok/s",
    )


def test_a_price_is_of_a_gpu_of_the_catalogue_and_of_days_in_order() -> None:
    gpus = {row.gpu for row in read_gpus()}

    assert all(row.gpu in gpus and row.gpu_count and row.seen_from <= row.seen_until for row in read_prices())


def test_a_past_price_is_found_by_its_day() -> None:
    def seen(day: date) -> list[float]:
        one = [row for row in read_prices() if (row.provider, row.gpu, row.gpu_count) == ("digitalocean", "MI300X", 1)]
        return [row.usd_per_hour for row in one if row.seen_from <= day <= row.seen_until]

    assert seen(date(2026, 2, 4)) == [1.99]  # the day of the runara report
    assert seen(date(2026, 5, 29)) == [1.99]
    assert seen(date(2026, 5, 30)) == seen(date(2025, 11, 19)) == []


def test_a_price_of_today_stands_with_the_size_and_not_here_too() -> None:
    now = {
        (row.cloud, row.gpu, row.gpu_count, row.is_spot): row.price_date
        for row in read_catalog().sizes
        if row.price_date
    }
    for row in read_prices():
        newest = now.get((row.provider, row.gpu, row.gpu_count, row.terms == "spot"))
        assert newest is None or row.seen_until < newest
