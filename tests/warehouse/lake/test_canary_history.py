"""What a night reads of the canaries before it: healthy machines of its kind, each night once."""

from pathlib import Path

from bench.machine.canary import CanaryRecord
from bench.machine.canary_history import EarlierCanary
from tests.bench.machine.canaries import record
from tests.warehouse.simulated_lake import write
from warehouse.lake.canary_history import read_earlier_canaries
from warehouse.rows.machine_rows import canary_rows

CLOUD, KIND, OTHER_KIND = "digitalocean", "gpu-mi300x1-192gb", "gpu-mi300x8-1536gb"
HEALTHY = {"memory_copy": 4200.0}


def add(data: Path, night: str, *canaries: CanaryRecord, kind: str = KIND, cloud: str = CLOUD) -> None:
    """One night, with a lease for each id among its canaries."""
    leases = [{"lease_id": one, "cloud": cloud, "kind": kind} for one in {canary.lease_id for canary in canaries}]
    write(data / "lake", "leases", night, [{"night": night, "machine_id": "m", **lease} for lease in leases])
    write(data / "lake", "canary", night, [row for one in canaries for row in canary_rows(night, one)])


def test_only_healthy_machines_of_the_kind_before_the_night_count_and_each_night_once(tmp_path: Path) -> None:
    add(tmp_path, "2026-03-01", record({"memory_copy": 4200.0}), record({"memory_copy": 4100.0}, lease_id="lease-2"))
    add(tmp_path, "2026-03-02", record({"memory_copy": 900.0}).model_copy(update={"unfit": "too slow"}))
    add(tmp_path, "2026-03-03", record(HEALTHY), record({"memory_copy": 3700.0}, "after"))
    add(tmp_path, "2026-03-04", record(HEALTHY), record({"memory_copy": 3900.0}, "after"))
    add(tmp_path, "2026-03-05", record(HEALTHY).model_copy(update={"reason": "it was ended by signal 6"}))
    add(tmp_path, "2026-03-06", record(HEALTHY), kind=OTHER_KIND)
    add(tmp_path, "2026-03-07", record(HEALTHY), cloud="ssh:ann@gpu1:22")
    add(tmp_path, "2026-03-08", record(HEALTHY).model_copy(update={"gpus": ("Some GPU 9000",)}))
    add(tmp_path, "2026-03-09", record(HEALTHY))

    found = read_earlier_canaries(tmp_path, "2026-03-09", CLOUD, KIND)

    assert found == [
        EarlierCanary("2026-03-01", "MI300X", "memory_copy", 4150.0),
        EarlierCanary("2026-03-04", "MI300X", "memory_copy", 4200.0),
    ]


def test_before_the_first_load_there_is_no_history(tmp_path: Path) -> None:
    assert read_earlier_canaries(tmp_path, "2026-03-09", CLOUD, KIND) == []
