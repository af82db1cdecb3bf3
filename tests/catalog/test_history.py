"""The measured history in catalog/history: enough nights of enough releases, small, and series of each release."""

from collections import Counter
from pathlib import Path

from warehouse.demo.history import HISTORY, load_history, read_nights
from warehouse.lake.query import run_sql

BYTES_MAX, RELEASES_MIN, NIGHTS_MIN = 3_000_000, 10, 5


def test_ten_releases_have_five_nights_each_and_the_files_are_small() -> None:
    nights = Counter((row["engine"], row["release"]) for row in read_nights(HISTORY) if row["night"])

    assert len(nights) >= RELEASES_MIN
    assert min(nights.values()) >= NIGHTS_MIN
    assert sum(path.stat().st_size for path in HISTORY.iterdir()) <= BYTES_MAX


def test_each_release_is_in_the_series_of_its_engine(tmp_path: Path) -> None:
    shown = load_history(tmp_path, HISTORY)
    releases = {(row["engine"], row["release"]) for row in read_nights(HISTORY) if row["night"]}

    found = run_sql(tmp_path, "SELECT DISTINCT night FROM series_nights").rows

    of_night = {shown[row["night"]]: (row["engine"], row["release"]) for row in read_nights(HISTORY) if row["night"]}
    assert {of_night[night] for (night,) in found} == releases
