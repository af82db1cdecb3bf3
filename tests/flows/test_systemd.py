"""The service under a real manager of systemd: what is killed is started again, and no stop leaks a machine."""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL, temporary_settings

from infra.clock import SystemClock, poll
from infra.leases.watchdog import log_of
from tests.flows.as_documented import STATUS, UP, AsDocumented, service
from tests.flows.conftest import end_all, make_house
from tests.flows.deployed import begin, state_of
from tests.flows.renting import Account, has_been_tidied, is_under_load, renting
from tests.flows.serving import PATIENCE_S

pytestmark = [pytest.mark.prefect, pytest.mark.matrix, pytest.mark.timeout(1500)]
SYSTEMD = "/lib/systemd/systemd"
GROUPS = Path("/sys/fs/cgroup")
# A manager needs a control group of its own in each tree, and believes that systemd runs this computer. In the group of
# others it would move them.
# What may outlive a stop of the worker: the watchdog, and the release that it starts, by now or a moment later.
RELEASING = {"infra.leases.watchdog", "flows reap"}
BEGIN = f"""
for tree in {GROUPS} {GROUPS}/systemd {GROUPS}/unified; do
  group=$tree/nightbench-tests-$$
  [ ! -e $tree/cgroup.procs ] || {{ mkdir $group && echo $$ >$group/cgroup.procs; }} || exit
done
grep -q nightbench-tests-$$ /proc/self/cgroup || exit
mount -t tmpfs none /run && mkdir -p /run/systemd/system && exec "$0" --user --log-target=console
"""


@dataclass(frozen=True)
class Manager:
    """A manager of units, and how to run a command beside it."""

    process: "subprocess.Popen[bytes]"
    environment: dict[str, str]

    @property
    def inside(self) -> tuple[str, ...]:
        return "nsenter", "--mount", "--target", str(self.process.pid)

    def systemctl(self, *words: str) -> str:
        """What a command of it prints, whatever its exit code."""
        argv = [*self.inside, "systemctl", "--user", *words]
        done = subprocess.run(
            argv, env=self.environment, capture_output=True, text=True, check=False, timeout=PATIENCE_S
        )
        return done.stdout.strip()

    def unit(self, part: str) -> str:
        listed = self.systemctl("list-unit-files", "--no-legend", f"nightbench-{part}-*")
        return listed.split()[0]

    def property(self, part: str, name: str) -> str:
        return self.systemctl("show", f"--property={name}", "--value", self.unit(part))


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    if not Path(SYSTEMD).exists() or shutil.which("nsenter") is None:
        pytest.skip("no manager of systemd can be started here: it is not installed")
    home, runtime = tmp_path / "home", tmp_path / "run"
    home.mkdir()
    runtime.mkdir(mode=0o700)
    ours = {name: value for name, value in os.environ.items() if not name.startswith("DBUS_")}
    env = {**ours, "HOME": str(home), "XDG_RUNTIME_DIR": str(runtime)}
    with (tmp_path / "systemd.log").open("wb") as log:
        argv = ["unshare", "--mount", "sh", "-c", BEGIN, SYSTEMD]
        process = subprocess.Popen(argv, env=env, stdout=log, stderr=log, start_new_session=True)
    made = Manager(process, env)
    try:
        runs = poll(SystemClock(), 0.2, lambda: made.systemctl("is-system-running") in {"running", "degraded"}, 20.0)
        if not runs:
            pytest.skip(f"no manager of systemd can be started here: {(tmp_path / 'systemd.log').read_text()[-300:]}")
        yield made
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE_S)
        for pattern in (f"nightbench-tests-{process.pid}", f"*/nightbench-tests-{process.pid}"):
            for group in GROUPS.glob(pattern):
                for path in sorted(group.glob("**/"), reverse=True):
                    path.rmdir()


@pytest.fixture
def account(manager: Manager, tmp_path: Path, prefect_home: Path) -> Iterator[Account]:
    house = make_house(Path(manager.environment["HOME"]), prefect_home)
    (tmp_path / "cloud").mkdir()
    with renting(tmp_path / "cloud", house) as account:
        account.write_suite(ttft_ms=1000)
        yield account
    end_all(house)


@pytest.fixture
def computer(manager: Manager, account: Account, shared: Path | None) -> Iterator[AsDocumented]:
    settings = {**account.house.environment, **manager.environment}
    own = {name: value for name, value in settings.items() if name.startswith(("NIGHTBENCH_", "XDG_RUNTIME_DIR"))}
    with service(Path(manager.environment["HOME"]), shared, own, manager.inside) as found:
        yield found


@pytest.fixture
def api(computer: AsDocumented) -> Iterator[SyncPrefectClient]:
    known = {PREFECT_API_URL: computer.api_url, PREFECT_API_AUTH_STRING: computer.login}
    with temporary_settings(known), get_client(sync_client=True) as client:
        yield client


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    assert poll(SystemClock(), 0.5, lambda: is_so() or None, PATIENCE_S), f"{what}: not within {PATIENCE_S} s"


def test_a_worker_that_is_killed_is_started_again_and_one_that_is_stopped_leaks_no_machine(
    computer: AsDocumented, manager: Manager, account: Account, api: SyncPrefectClient
) -> None:
    for part in ("server", "pages", "worker"):
        assert manager.systemctl("is-enabled", manager.unit(part)) == "enabled"
    assert "server: running, pages: running, worker: running" in computer.run(STATUS)

    run = begin("nightly/nightly", suite=str(account.house.suite), target="digitalocean")
    wait_until(lambda: is_under_load(account), "the first night measures")
    os.kill(int(manager.property("worker", "MainPID")), signal.SIGKILL)
    wait_until(lambda: manager.property("worker", "NRestarts") == "1", "the worker is started again")
    wait_until(lambda: manager.property("worker", "ActiveState") == "active", "the worker runs again")
    wait_until(lambda: state_of(api, run.id).is_final(), "the night ends by itself")
    assert state_of(api, run.id).name == "Completed"
    account.judge()

    second = begin("nightly/nightly", suite=str(account.house.suite), target="digitalocean")
    wait_until(lambda: is_under_load(account), "the second night measures")
    assert left_by_stop(manager) <= RELEASING
    wait_until(lambda: has_been_tidied(account), "the machine of the second night is released")
    assert "exited without releasing it; releasing its machine" in log_of(account.house.data).read_text()
    account.judge()
    assert "started: worker" in computer.run(UP)
    begin("reap/reap")
    wait_until(lambda: state_of(api, second.id).is_final(), "the second night is reported")
    assert state_of(api, second.id).name == "Crashed"


def left_by_stop(manager: Manager) -> set[str]:
    """Stop the worker's unit; what still runs in its control group, by module, with the command of our own program."""
    unit = manager.unit("worker")
    manager.systemctl("stop", unit)
    assert manager.systemctl("is-active", unit) == "inactive"
    listed = manager.systemctl("status", "--no-pager", "--full", unit)
    left = re.findall(r"─ *\d+ (.*)", listed)  # numbers of unlike lengths are padded
    return {found[0] if (found := re.findall(r" -m (flows \w+|\S+)", line)) else line for line in left}
