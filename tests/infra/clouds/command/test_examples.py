"""The examples of scripts: Slurm's against small fake commands, those of a REST API against an emulated one."""

import getpass
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.errors import CloudError, LeaseError, NoCapacityError
from bench.machine.names import MachineName
from infra.clock import SystemClock
from infra.clouds.cloud import MachineOrder, Offer
from infra.clouds.command.cloud import CommandCloud, CommandSetup
from infra.clouds.command.scripts import Scripts
from infra.leases.acquire import take_lease
from infra.leases.offers import Choice, LeaseRequest
from infra.leases.release import release_lease
from infra.ledger.lease import Lease
from infra.ledger.ledger import Ledger
from infra.processes.bounded_command import Limits
from tests.emulators.command_cloud.account import SECONDS, write_script
from tests.emulators.digitalocean import Emulator
from tests.infra.clouds.command.real_slurm import KIND, NODE, PARTITION, cluster, job_names, require_slurm

EXAMPLES = Path(__file__).parents[4] / "docs" / "how-to" / "clouds"
SIZE = "s-2vcpu-4gb"
# One line for each job: id|state|node|partition|name.
SALLOC = """
[ ! -e "$JOBS.other" ] || {
  echo 'salloc: error: Job submit/allocate failed: Requested node configuration is not available' >&2; exit 1; }
[ ! -e "$JOBS.busy" ] || { echo 'salloc: error: Unable to allocate resources: Requested nodes are busy' >&2; exit 1; }
echo "$@" >> "$JOBS.asked"
for one; do case $one in --job-name=*) name=${one#*=} ;; --partition=*) partition=${one#*=} ;; esac; done
id=$(( 4700 + $(wc -l < "$JOBS.asked") ))
echo "$id|RUNNING|node17|$partition|$name" >> "$JOBS"
echo "salloc: Granted job allocation $id" >&2
echo "salloc: Nodes node17 are ready for job" >&2
"""
SQUEUE = """
[ ! -e "$JOBS.down" ] || { echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1; }
cat "$JOBS"
"""
SCANCEL = """
grep -q "^$1|" "$JOBS" || { echo "scancel: error: Kill job error on job id $1: Invalid job id specified" >&2; exit 1; }
grep -v "^$1|" "$JOBS" > "$JOBS.new"
mv "$JOBS.new" "$JOBS"
"""


def cloud_of(example: str, folder: Path, seconds: float = SECONDS) -> CommandCloud:
    setup = CommandSetup(folder / "keys", lambda name, _keys: f"#cloud-config\n# {name}\n", settle_s=0.3)
    return CommandCloud(Scripts(EXAMPLES / example, Limits(seconds, 1 << 20)), SystemClock(), setup)


def take(cloud: CommandCloud, folder: Path, kind: str, region: str) -> Lease:
    wanted = LeaseRequest((Choice(kind),), minutes=90, regions=(region,))
    return take_lease(cloud, Ledger(folder / "ledger.sqlite"), SystemClock(), wanted, night="2026-01-01")


def release(cloud: CommandCloud, folder: Path, lease: Lease) -> Lease:
    return release_lease(cloud, Ledger(folder / "ledger.sqlite"), SystemClock(), lease.lease_id)


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cluster where somebody else's job runs."""
    folder, file = tmp_path / "bin", tmp_path / "jobs"
    folder.mkdir()
    for name, lines in (("salloc", SALLOC), ("squeue", SQUEUE), ("scancel", SCANCEL)):
        write_script(folder / name, f"JOBS={file}\n{lines}")
    file.write_text("4242|RUNNING|node03|gpu|train a|b\n")
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return file


def test_the_slurm_example_allocates_a_node_finds_it_and_cancels_it_alone(tmp_path: Path, jobs: Path) -> None:
    cloud = cloud_of("slurm", tmp_path)

    lease = take(cloud, tmp_path, "mi300x", "amd")

    assert (lease.machine_id, lease.address) == ("4701", f"ssh:{getpass.getuser()}@node17")
    asked = Path(f"{jobs}.asked").read_text().split()
    assert {f"--job-name={lease.name}", "--gres=gpu:mi300x:1", "--time=90", "--partition=amd"} <= set(asked)
    assert release(cloud, tmp_path, lease).state == "released"
    assert jobs.read_text() == "4242|RUNNING|node03|gpu|train a|b\n"


def test_the_slurm_example_refuses_where_the_nodes_are_busy(tmp_path: Path, jobs: Path) -> None:
    Path(f"{jobs}.busy").touch()

    with pytest.raises(NoCapacityError, match="Requested nodes are busy"):
        take(cloud_of("slurm", tmp_path), tmp_path, "h100", "gpu")


def test_the_slurm_example_shows_no_machine_as_gone_while_the_controller_is_down(tmp_path: Path, jobs: Path) -> None:
    cloud = cloud_of("slurm", tmp_path)
    lease = take(cloud, tmp_path, "h100", "gpu")
    Path(f"{jobs}.down").touch()

    with pytest.raises(CloudError, match="list exited with 1: slurm_load_jobs error: Unable to contact"):
        cloud_of("slurm", tmp_path).find(str(lease.name))


def test_the_slurm_example_refuses_what_no_node_of_the_partition_has(tmp_path: Path, jobs: Path) -> None:
    Path(f"{jobs}.other").touch()

    with pytest.raises(LeaseError, match=r"rent rented nothing \(request\): .*Requested node configuration"):
        take(cloud_of("slurm", tmp_path), tmp_path, "h100", "gpu")


@pytest.fixture
def real_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cluster of the real Slurm, with one node, where somebody else's job waits for another time."""
    require_slurm()
    with cluster(tmp_path / "slurm") as configuration:
        monkeypatch.setenv("SLURM_CONF", str(configuration))
        later = ["sbatch", "--begin=now+1hour", "--job-name=train a|b", "--wrap=true", "--output=/dev/null"]
        subprocess.run(later, check=True, stdout=subprocess.DEVNULL)
        yield configuration


@pytest.mark.matrix  # `make test` has it with fake commands
def test_the_slurm_example_on_a_real_cluster_has_one_node_for_one_lease_and_cancels_it_alone(
    tmp_path: Path, real_cluster: Path
) -> None:
    cloud = cloud_of("slurm", tmp_path, 60.0)  # the default: salloc waits 30 s for a node
    with pytest.raises(LeaseError, match=r"rent rented nothing \(request\): .*Requested node configuration"):
        take(cloud, tmp_path, "h100", "gpu")

    lease = take(cloud, tmp_path, KIND, PARTITION)

    assert lease.address == f"ssh:{getpass.getuser()}@{NODE}"
    other = tmp_path / "other-night"
    other.mkdir()
    with pytest.raises(NoCapacityError, match="Connection timed out"):  # after the seconds of --immediate
        take(cloud, other, KIND, PARTITION)
    assert job_names(real_cluster) == ["train a|b", str(lease.name)]
    assert release(cloud, tmp_path, lease).state == "released"
    assert release(cloud, tmp_path, lease).state == "released"
    assert job_names(real_cluster) == ["train a|b"]


@pytest.fixture
def emulator(monkeypatch: pytest.MonkeyPatch) -> Iterator[Emulator]:
    missing = [program for program in ("curl", "jq") if shutil.which(program) is None]
    if missing:
        pytest.skip(f"no {missing[0]} on PATH, which the example's scripts run")
    with Emulator(speed=1000.0, tls=False) as emulator:
        emulator.plant_droplet("somebody-elses")
        monkeypatch.setenv("NIGHTBENCH_COMMAND_API", emulator.url)
        monkeypatch.setenv("NIGHTBENCH_COMMAND_TOKEN", emulator.token)
        yield emulator


def test_the_rest_example_rents_a_machine_finds_it_and_deletes_it_alone(tmp_path: Path, emulator: Emulator) -> None:
    cloud = cloud_of("rest", tmp_path)
    region = next(str(one.region) for one in cloud.offers() if one.kind == SIZE)

    lease = take(cloud, tmp_path, SIZE, region)

    droplet = emulator.living("nb")[0]
    assert (lease.machine_id, lease.address, lease.name) == (str(droplet.droplet_id), droplet.address, droplet.name)
    assert str(lease.name) in str(droplet.user_data)
    assert str(lease.account).startswith("5df3e300")  # the team of the token
    assert release(cloud, tmp_path, lease).state == "released"
    emulator.invariant("nb")


def test_the_rest_example_returns_why_the_api_rented_nothing(tmp_path: Path, emulator: Emulator) -> None:
    emulator.fault("POST", "/v2/droplets", phase="status", status=422, body={"id": "x", "message": "bad image"})
    order = MachineOrder(MachineName("0a1b", 1, SystemClock().now()), Offer(SIZE, 1.0, "nyc1"))

    with pytest.raises(LeaseError, match=r"rent rented nothing \(request\): bad image"):
        cloud_of("rest", tmp_path).rent(order)


def test_the_rest_example_lists_all_pages_or_fails(tmp_path: Path, emulator: Emulator) -> None:
    emulator.fault("GET", "/v2/droplets", nth=2, phase="status", status=503)

    with pytest.raises(CloudError, match="list exited with 22"):
        cloud_of("rest", tmp_path).find_ours()
