"""The measured history in catalog/history: enough nights of enough releases, small, and series of each release."""

from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq

from warehouse.demo.history import HISTORY, load_history, read_nights
from warehouse.lake.query import run_sql

BYTES_MAX, RELEASES_MIN, NIGHTS_MIN = 3_000_000, 10, 5


def _releases() -> dict[str, tuple[str, str]]:
    """Engine and release of each measured night."""
    return {row["night"]: (row["engine"], row["release"]) for row in read_nights(HISTORY) if row["night"]}


def test_ten_releases_have_five_nights_each_and_the_files_are_small() -> None:
    nights = Counter(_releases().values())

    assert len(nights) >= RELEASES_MIN
    assert min(nights.values()) >= NIGHTS_MIN
    assert sum(path.stat().st_size for path in HISTORY.iterdir()) <= BYTES_MAX


def test_each_release_is_in_the_series_and_what_a_view_computes_is_not_stored(tmp_path: Path) -> None:
    shown, releases = load_history(tmp_path, HISTORY), _releases()

    found = run_sql(tmp_path, "SELECT DISTINCT night FROM series_nights").rows
    ((good, stored, computed),) = run_sql(
        tmp_path, "SELECT count(*) FILTER (outcome = 'ok'), count(itl_us), count(itl_ms) FROM requests"
    ).rows

    of_night = {name: releases[night] for night, name in shown.items()}
    assert {of_night[night] for (night,) in found} == set(releases.values())
    assert "itl_ms" not in pq.read_schema(HISTORY / "requests.parquet").names
    assert good == stored == computed > 0
