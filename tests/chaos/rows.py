"""The check that a storm has lost no row and doubled none."""

from collections import Counter

from bench.record import RunRecord
from infra.ledger.ledger import Ledger
from infra.storage import store
from tests.chaos.place import NIGHT
from tests.chaos.world import World
from warehouse.rows.lease_rows import lease_rows


def must_keep_rows(world: World) -> None:
    """Raise AssertionError where a lease, an attempt or a run is missing or twice in the night's folder.

    Everything on the bill has an attempt. Records that the storm deleted are not asked for.
    """
    data = world.place.data
    if not world.place.ledger_file.exists() or (world.place.notes / "records.lost").exists():
        return
    ledger = Ledger(world.place.ledger_file)
    attempts = Counter((one.lease_id, one.attempt) for one in ledger.attempts())
    billed = {one.name for one in world.cloud.ledger() if one.kind == "droplet" and not one.foreign}
    assert billed <= {one.name for one in ledger.attempts()}, "a machine was billed that no attempt names"
    assert [one.lease_id for one in ledger.open_leases()] == [], "a lease is still open"
    files = sorted((store.night_folder(data, NIGHT) / "leases").glob("*.json"))
    rows = [lease_rows(NIGHT, path.read_bytes()) for path in files]
    assert Counter(str(one.lease["lease_id"]) for one in rows) == Counter(one.lease_id for one in ledger.leases())
    assert sum(len(one.attempts) for one in rows) == attempts.total() == len(attempts)
    assert all((one.lease["usd"] or 0.0) >= 0.0 for one in rows), "a lease costs less than nothing"
    _must_keep_runs(world)


def _must_keep_runs(world: World) -> None:
    measured = world.place.notes / "measured.log"
    if not measured.exists():
        return
    runs = Counter(measured.read_text().splitlines())
    assert not [run for run, count in runs.items() if count > 1], "a run was measured twice"
    folders = list(store.night_folder(world.place.data, NIGHT).glob("*/[0-9]*/record.json"))
    records = [RunRecord.model_validate_json(path.read_bytes()) for path in folders]
    assert Counter(f"{one.scenario_id}/{one.repeat}" for one in records) >= runs
    assert all(store.is_whole(path.parent) for path in folders)
