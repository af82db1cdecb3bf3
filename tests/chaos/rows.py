"""The check that a storm has lost no row and doubled none."""

from collections import Counter

from bench.record import RunRecord
from infra.ledger.ledger import Ledger
from infra.storage import store
from tests.chaos.place import CRASH, NIGHT, Place
from tests.chaos.world import World
from warehouse.rows.lease_rows import lease_rows


def must_keep_rows(world: World) -> None:
    """Raise AssertionError where a lease, an attempt or a run is missing or twice in the night's folder.

    Everything on the bill has an attempt. Records that the storm deleted are not asked for.
    """
    place = world.place
    if not place.ledger_file.exists() or (place.notes / "records.lost").exists():
        return
    billed = {one.name for one in world.cloud.ledger() if one.kind == "droplet" and not one.foreign}
    attempts = Ledger(place.ledger_file).attempts()
    assert billed <= {one.name for one in attempts}, "a machine was billed that no attempt names"
    must_keep_leases(place, NIGHT)
    must_keep_runs(place, NIGHT)


def must_keep_leases(place: Place, night: str) -> None:
    """Raise AssertionError where a lease of a night is open, or it or an attempt is missing or twice in its folder."""
    if not place.ledger_file.exists():
        return
    ledger = Ledger(place.ledger_file)
    assert [one.lease_id for one in ledger.open_leases()] == [], "a lease is still open"
    leases = Counter(one.lease_id for one in ledger.leases() if one.night == night)
    attempts = Counter((one.lease_id, one.attempt) for one in ledger.attempts() if one.lease_id in leases)
    files = sorted((store.night_folder(place.data, night) / "leases").glob("*.json"))
    rows = [lease_rows(night, path.read_bytes()) for path in files]
    assert Counter(str(one.lease["lease_id"]) for one in rows) == leases
    assert sum(len(one.attempts) for one in rows) == attempts.total() == len(attempts)
    assert all((one.lease["usd"] or 0.0) >= 0.0 for one in rows), "a lease costs less than nothing"


def must_keep_runs(place: Place, night: str) -> None:
    """Raise AssertionError where a run that was measured is missing, twice or incomplete in its night's folder."""
    measured = place.notes / f"{night}.measured"
    if not measured.exists():
        return
    runs = Counter(measured.read_text().splitlines())
    assert not [run for run, count in runs.items() if count > 1], "a run was measured twice"
    folders = list(store.night_folder(place.data, night).glob("*/[0-9]*/record.json"))
    records = [RunRecord.model_validate_json(path.read_bytes()) for path in folders]
    assert Counter(f"{one.scenario_id}/{one.repeat}" for one in records) >= runs
    assert all(store.is_whole(path.parent) for path in folders)


def must_not_crash(place: Place) -> None:
    """Raise AssertionError where a night ended with an error that is none of ours: it tested nothing after that."""
    crash = place.notes / CRASH
    assert not crash.exists(), crash.read_text()
