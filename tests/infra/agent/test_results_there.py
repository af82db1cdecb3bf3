"""A machine hands back, by name, what its plan gave it; each result is on disk here before it is deleted there."""

import json
import os
from pathlib import Path
from typing import Self

import pytest

from bench.engines.ladder import fallback_run
from bench.errors import RefusedFileError
from bench.machine_nights import RefusedResults, machine_night
from bench.manifest import manifest_text
from bench.record import NightRecord, PlannedRun
from infra.agent.executor import LeaseContext, SshExecutor
from infra.loadgen.suite_file import make_night
from infra.remote.host import Access
from infra.remote.ssh_host import SshHost
from infra.reporting import silent
from infra.storage import store
from infra.storage.accepted import RUN_LIMITS, Limits
from tests.crash import recorded
from tests.emulators.sshd import Sshd, running_machine
from tests.infra.agent.far import LEASE, far

SUITE = """
name = "two"
repeats = 2
[model]
name = "tiny"
source = "generated:tiny?seed=0"
[engine]
version = "0.32.0"
max_model_len = 4096
[[machines]]
name = "mi300x"
kind = "gpu-mi300x1-192gb"
[[machines]]
name = "mi325x"
kind = "gpu-mi325x1-256gb"
[[scenarios]]
name = "one"
isl = 16
osl = 8
concurrency = 1
request_count = 12
"""
A, B = "mi300x", "mi325x"


@pytest.fixture
def night(tmp_path: Path) -> NightRecord:
    """A night over two machines, two runs each, planned in the data folder of this computer."""
    (tmp_path / "two.toml").write_text(SUITE)
    night = make_night(tmp_path / "two.toml", "digitalocean", poc=False, is_draft=True)
    store.write_json(store.night_file(tmp_path / "data", night.night), night)
    return night


def runs_of(night: NightRecord, machine: str) -> list[PlannedRun]:
    return list(machine_night(night, machine).runs)


def name_of(run: PlannedRun) -> str:
    return f"{run.scenario.scenario_id}/{run.repeat}"


def folder_on(sshd: Sshd, night: NightRecord) -> Path:
    """The night's folder on a machine."""
    return sshd.home / "nightbench/data/runs" / night.night


def whole_run(folder: Path, by: str = "its machine", failure: str | None = None) -> None:
    (folder / "load").mkdir(parents=True)
    (folder / "record.json").write_text(json.dumps({"by": by, "failure": failure}))
    (folder / "load" / "events.bin").write_bytes(by.encode() * 9)
    (folder / "MANIFEST.sha256").write_text(manifest_text(store.file_hashes(folder)))


def files_below(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_machine_cannot_hand_back_the_runs_or_the_calibration_of_another(
    sshd: Sshd, keys: tuple[Path, str], tmp_path: Path, night: NightRecord
) -> None:
    ours, theirs = runs_of(night, A), runs_of(night, B)
    said: list[str] = []
    with running_machine(tmp_path / "farther", keys[1]) as other:
        for run in (*ours, *theirs):
            whole_run(folder_on(sshd, night) / name_of(run), "A")
        for run in theirs:
            whole_run(folder_on(other, night) / name_of(run), "B")
        for machine, by in ((sshd, "A"), (other, "B")):
            (folder_on(machine, night) / "servers").mkdir()
            (folder_on(machine, night) / "servers" / f"{theirs[0].scenario.server_id}-0.log").write_text(by)
            (folder_on(machine, night) / f"calibration-{B}.json").write_text(json.dumps({"by": by}))
        (folder_on(sshd, night) / f"calibration-{A}.json").write_text("{}")

        data = tmp_path / "data"
        far(sshd, keys, data, night=night.night, machine=A).collect_and_clean(said.append)
        far(other, keys, data, night=night.night, machine=B).collect_and_clean(silent)

    here = store.night_folder(data, night.night)
    assert {json.loads((here / name_of(run) / "record.json").read_text())["by"] for run in ours} == {"A"}
    assert {json.loads((here / name_of(run) / "record.json").read_text())["by"] for run in theirs} == {"B"}
    assert all(store.is_whole(here / name_of(run)) for run in (*ours, *theirs))
    assert json.loads((here / f"calibration-{B}.json").read_text()) == {"by": "B"}
    assert (here / f"calibration-{A}.json").exists()
    assert (here / "servers" / f"{theirs[0].scenario.server_id}-0.log").read_text() == "B"
    forged = {f"{name_of(run)}/MANIFEST.sha256" for run in theirs}
    forged |= {f"calibration-{B}.json", f"servers/{theirs[0].scenario.server_id}-0.log"}
    assert len(said) == len(forged)
    assert all(
        any(f"offers {name!r}: the plan gave this machine no such result" in line for line in said) for name in forged
    )


def test_what_is_refused_is_named_once_is_stored_for_the_load_and_ends_no_run(
    sshd: Sshd, keys: tuple[Path, str], tmp_path: Path, night: NightRecord
) -> None:
    foreign = folder_on(sshd, night) / name_of(runs_of(night, B)[0])
    whole_run(foreign)
    executor, said = far(sshd, keys, tmp_path / "data", night=night.night, machine=A), list[str]()

    for _time in range(2):
        executor.collect_and_clean(said.append)

    assert [line.split(" offers ")[0] for line in said] == [
        f"root@127.0.0.1:{sshd.port}:nightbench/data/runs/{night.night}"
    ]
    assert foreign.is_dir()
    stored = (store.night_folder(tmp_path / "data", night.night) / "refused" / f"{LEASE}.json").read_bytes()
    name = f"{name_of(runs_of(night, B)[0])}/MANIFEST.sha256"
    assert RefusedResults.model_validate_json(stored) == RefusedResults(lease_id=LEASE, count=1, names=(name,))


def test_every_result_is_whole_there_or_on_disk_here_whenever_the_power_fails(
    sshd: Sshd, keys: tuple[Path, str], tmp_path: Path, night: NightRecord
) -> None:
    there, data = folder_on(sshd, night), tmp_path / "data"
    run, *_more = runs_of(night, A)
    whole_run(there / name_of(run))
    (there / "servers").mkdir()
    (there / "servers" / f"{run.scenario.server_id}-0.log").write_text("a log")
    (there / f"calibration-{A}.json").write_text("{}")
    results, root = files_below(there), store.night_folder(Path(), night.night)

    with recorded(data, lambda: files_below(there)) as cuts:
        far(sshd, keys, data, night=night.night, machine=A).collect_and_clean(silent)

    assert files_below(there) == {}
    for number, cut in enumerate(cuts):
        for at, (disk, write) in enumerate(cut.disks(seed=number)):
            write(left := tmp_path / "disks" / f"{number}-{at}")
            here = files_below(left / root) if (left / root).is_dir() else {}
            assert [name for name in results if results[name] not in (cut.seen.get(name), here.get(name))] == [], disk
            if (left / root / name_of(run)).exists():
                assert store.is_whole(left / root / name_of(run)), disk


def test_a_smaller_run_is_accepted_once_the_run_that_it_follows_ran_out_of_memory(
    sshd: Sshd, keys: tuple[Path, str], tmp_path: Path, night: NightRecord
) -> None:
    first, second = runs_of(night, A)
    smaller = [fallback_run(machine_night(night, A), run) for run in (first, second)]
    names = [name_of(run) for run in smaller if run is not None]
    for name in (name_of(second), *names):
        whole_run(folder_on(sshd, night) / name)
    whole_run(folder_on(sshd, night) / name_of(first), failure="oom_kv")

    far(sshd, keys, tmp_path / "data", night=night.night, machine=A).collect_and_clean(silent)

    here = store.night_folder(tmp_path / "data", night.night)
    assert [(here / name).exists() for name in names] == [True, False]


def test_only_whole_runs_and_logs_of_its_own_night_are_copied_from_a_machine(
    sshd: Sshd, keys: tuple[Path, str], tmp_path: Path, night: NightRecord
) -> None:
    there, here = folder_on(sshd, night), store.night_folder(tmp_path / "data", night.night)
    first, second = runs_of(night, A)
    server, scenario = first.scenario.server_id, first.scenario.scenario_id
    (there / "servers").mkdir(parents=True)
    (there / "servers" / f"{server}-0.log").write_text("a log")
    (there / "servers" / f"{server}-1.log").symlink_to("/etc/hostname")
    (there / "servers" / "night.log").write_text("no server has this id")
    (there / "night.json").write_text("forged")
    (there / "calibration-..json").write_text("forged")
    whole_run(there / name_of(first))
    whole_run(there / scenario / "00")
    whole_run(there / scenario / "7")
    whole_run(there / "forged" / "night.json")
    whole_run(there / "..." / "0")
    (there / scenario[::-1]).symlink_to(there / scenario)
    whole_run(there / name_of(second))
    (there / name_of(second) / "key").symlink_to("/etc/hostname")
    plan, said = (here / "night.json").read_bytes(), list[str]()

    with pytest.raises(
        RefusedFileError, match=rf"^root@[\d.:]+:nightbench/data/runs/\S*/{second.repeat} offers .*copied"
    ):
        far(sshd, keys, tmp_path / "data", night=night.night, machine=A).collect_and_clean(said.append)

    assert (here / "night.json").read_bytes() == plan
    assert set(files_below(here)) == {
        "night.json",
        f"refused/{LEASE}.json",
        f"servers/{server}-0.log",
        *(f"{name_of(first)}/{name}" for name in ("MANIFEST.sha256", "record.json", "load/events.bin")),
    }
    refused = {line.split("offers ")[1].split("'")[1] for line in said}
    assert refused == {
        f"servers/{server}-1.log",
        "servers/night.log",
        "calibration-..json",
        f"{scenario}/00/MANIFEST.sha256",
        f"{scenario}/7/MANIFEST.sha256",
        "forged/night.json/MANIFEST.sha256",
        scenario[::-1],
        f"{name_of(second)}/key",
    }


@pytest.mark.parametrize("spoil", ["pipe", "newline"])
def test_a_run_with_a_file_that_no_run_has_is_not_copied(
    sshd: Sshd, keys: tuple[Path, str], tmp_path: Path, night: NightRecord, spoil: str
) -> None:
    run, other = runs_of(night, A)
    for each in (run, other):
        whole_run(folder_on(sshd, night) / name_of(each))
    folder = folder_on(sshd, night) / name_of(run)
    os.mkfifo(folder / "pipe") if spoil == "pipe" else (folder / "a\nb").touch()

    with pytest.raises(RefusedFileError, match="not copied"):
        far(sshd, keys, tmp_path / "data", night=night.night, machine=A).collect_and_clean(silent)

    here = store.night_folder(tmp_path / "data", night.night)
    assert [(here / name_of(each)).exists() for each in (run, other)] == [False, True]
    assert folder.is_dir()


ID = "0123456789abcdef"


@pytest.mark.parametrize(
    "listing",
    [
        "f 2 ../night.json",
        f"f 2 ../../runs/night/{ID}/0/MANIFEST.sha256",
        "f 2 /etc/cron.d/MANIFEST.sha256",
        f"f 2 {ID}/../MANIFEST.sha256",
        "f 2 night.json",
        "f 2 leases/lease-0001.json",
        f"f 2 servers/../{ID}-0.log",
        f"f 2 servers/{ID}-0.log",
        f"f 2 {ID}/0/MANIFEST.sha256",
        "l 2 calibration.json",
        "f -1 calibration.json",
        "f 1e9 calibration.json",
        "calibration.json",
        "f",
    ],
)
def test_no_listing_of_a_machine_makes_a_file_here_but_the_record_of_what_was_refused(
    tmp_path: Path, listing: str
) -> None:
    said: list[str] = []

    SshExecutor(LyingHost(listing), LeaseContext(LEASE, "night", tmp_path)).collect_and_clean(said.append)

    assert list(files_below(tmp_path)) == [f"runs/night/refused/{LEASE}.json"]
    assert [line.startswith("root@machine:1:nightbench/data/runs/night offers ") for line in said] == [True]


class LyingHost(SshHost):
    """A machine that answers every command with this listing and sends a file for every name."""

    def __init__(self, listing: str) -> None:
        super().__init__(Access("machine", 1, "root", Path("key"), "ssh-ed25519 AAAA"))
        self._listing = listing

    def with_patience(self, patience_s: float) -> Self:
        del patience_s
        return self

    def output_of(self, script: str, *, timeout_s: float = 60.0) -> str:
        del timeout_s
        return f"{self._listing}\0" if "MANIFEST" in script else ""

    def get(self, source: str, target: Path, limits: Limits = RUN_LIMITS) -> None:
        del source, limits
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("{}")
