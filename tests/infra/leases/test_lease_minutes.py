"""How long the leases of a night lasted."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench.record import LeaseReport
from infra.leases.lease_reports import lease_minutes
from infra.storage import store

NIGHT = "2026-03-01T010000Z"
BEGAN = datetime(2026, 3, 1, 1, tzinfo=UTC)


def keep(data: Path, lease_id: str, rented: timedelta | None, released: timedelta | None) -> None:
    report = LeaseReport(
        lease_id=lease_id,
        cloud="digitalocean",
        machine_id="1",
        usd_per_hour=2.59,
        rented_at=None if rented is None else BEGAN + rented,
        released_at=None if released is None else BEGAN + released,
    )
    store.write_json(store.lease_file(data, NIGHT, lease_id), report)


def test_the_time_between_two_leases_of_a_resumed_night_is_of_no_lease(tmp_path: Path) -> None:
    day, half_an_hour = timedelta(days=1), timedelta(minutes=30)
    keep(tmp_path, "one", timedelta(), half_an_hour)
    keep(tmp_path, "two", day, day + half_an_hour)
    keep(tmp_path, "never-had", None, day)

    assert lease_minutes(tmp_path, NIGHT) == 60


def test_the_minutes_of_leases_are_unknown_while_one_is_open_and_where_there_was_none(tmp_path: Path) -> None:
    assert lease_minutes(tmp_path, NIGHT) is None
    keep(tmp_path, "one", timedelta(), timedelta(minutes=5))
    keep(tmp_path, "two", timedelta(), None)
    assert lease_minutes(tmp_path, NIGHT) is None
