from pathlib import Path

import pytest

from tests.warehouse.simulated_lake import write
from warehouse.lake.gap_retention import drop_old_gaps
from warehouse.lake.query import run_sql

NIGHTS = ("2026-01-01T010000Z", "2026-02-01T010000Z", "2026-03-01T010000Z", "2026-03-02T010000Z")
NEWEST = NIGHTS[-1]


def _write(data: Path, night: str, requests: int = 3) -> None:
    ids = {"run_id": f"{night}/s/0", "scenario_id": "s", "repeat": 0, "outcome": "ok", "ttft_ms": 20.0}
    # Older files have milliseconds only.
    gaps = {"itl_tokens": [1, 1]} | ({"itl_ms": [5.0, 6.0]} if night in NIGHTS[::2] else {"itl_us": [5000, 6000]})
    write(data / "lake", "requests", night, [ids | gaps | {"request_index": at} for at in range(requests)])


def _with_gaps(data: Path) -> list[str]:
    return [
        night for (night,) in run_sql(data, "SELECT DISTINCT night FROM requests WHERE itl_ms NOT NULL ORDER BY 1").rows
    ]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Four nights with gaps."""
    for night in NIGHTS:
        _write(tmp_path, night)
    return tmp_path


def test_gaps_are_told_in_both_units_whichever_a_file_has(data: Path) -> None:
    rows = run_sql(data, "SELECT DISTINCT night, itl_us, itl_ms FROM requests ORDER BY night").rows

    assert rows == tuple((night, [5000, 6000], [5.0, 6.0]) for night in NIGHTS)


def test_a_gap_of_an_older_file_that_is_too_long_for_microseconds_is_the_longest(tmp_path: Path) -> None:
    ids = {"run_id": "s", "scenario_id": "s", "repeat": 0, "outcome": "ok", "request_index": 0}
    write(tmp_path / "lake", "requests", NEWEST, [ids | {"itl_ms": [5.0, 2_200_000.0]}])

    assert run_sql(tmp_path, "SELECT itl_us FROM requests").rows == (([5000, 2**31 - 1],),)


def test_old_nights_lose_their_gaps_and_nothing_else(data: Path) -> None:
    assert drop_old_gaps(data, 20, NEWEST) == [NIGHTS[1], NIGHTS[0]]

    assert _with_gaps(data) == [NIGHTS[2], NIGHTS[3]]
    assert run_sql(data, "SELECT count(ttft_ms), count(itl_tokens) FROM requests").rows == ((12, 6),)


def test_the_night_that_is_just_as_old_as_is_kept_keeps_them(data: Path) -> None:
    assert drop_old_gaps(data, 29, NEWEST) == [NIGHTS[0]]


def test_nothing_changes_the_second_time(data: Path) -> None:
    drop_old_gaps(data, 20, NEWEST)

    assert drop_old_gaps(data, 20, NEWEST) == []


def test_an_old_night_that_is_loaded_again_loses_them_again(data: Path) -> None:
    drop_old_gaps(data, 20, NEWEST)
    _write(data, NIGHTS[0])

    assert drop_old_gaps(data, 20, NIGHTS[0]) == [NIGHTS[0]]


def test_a_night_without_requests_does_not_hide_the_older_ones(data: Path) -> None:
    _write(data, NIGHTS[1], requests=0)

    assert drop_old_gaps(data, 20, NEWEST) == [NIGHTS[0]]


def test_an_empty_lake_has_nothing_to_drop(tmp_path: Path) -> None:
    assert drop_old_gaps(tmp_path, 20, NEWEST) == []
