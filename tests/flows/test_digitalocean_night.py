"""A whole night on the emulated DigitalOcean: real pydo, real sshd droplets, the truth server in the engine's place."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bench.errors import NightbenchError
from flows.nightly import nightly
from infra.ledger import Ledger
from tests.emulators.digitalocean import Emulator
from tests.emulators.digitalocean.sshd_droplets import SshdDroplets
from tests.emulators.sshd import NoServerError
from tests.flows.conftest import House
from tests.flows.test_real_engine import SMALLER
from warehouse.query import run_sql

pytestmark = [pytest.mark.prefect]
ROOT = Path(__file__).parents[2]
MACHINE = """
[machine]
kind = "gpu-mi300x1-192gb"
regions = ["atl1"]
"""


@dataclass(frozen=True)
class Account:
    """An account at the cloud, and the droplets it has."""

    cloud: Emulator
    fleet: SshdDroplets
    image: Path  # what the image says of its engine

    def install(self, engine: str) -> None:
        """Let droplets that are made from now on have this engine."""
        self.image.write_text(f"export NIGHTBENCH_VLLM_EXECUTABLE={shlex.quote(engine)}\n")

    def when_measuring(self) -> None:
        """Wait until a load is under way on a droplet."""
        until = time.monotonic() + 150
        while not list(self.fleet.folder.glob("*/home/nightbench/data/runs/*/*/.partial-*/load/progress.json")):
            assert time.monotonic() < until
            time.sleep(0.1)


@pytest.fixture
def account(house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    image = tmp_path / "image.env"

    def furnish(home: Path) -> None:
        (home / "nightbench").mkdir()
        shutil.copy(image, home / "nightbench" / "host.env")

    try:
        fleet = SshdDroplets(tmp_path / "fleet", furnish=furnish)
    except NoServerError as error:
        pytest.skip(str(error))
    engine = os.environ["NIGHTBENCH_VLLM_EXECUTABLE"]
    with Emulator(droplets=fleet, speed=20.0) as cloud:
        settings = {
            "NIGHTBENCH_DO_TOKEN": cloud.token,
            "NIGHTBENCH_DO_ENDPOINT": cloud.url,
            "NIGHTBENCH_DO_CA": str(cloud.ca),
            "NIGHTBENCH_DO_SSH_PORT": str(fleet.port),
            "NIGHTBENCH_DO_SETTLE_S": "1",
            "NIGHTBENCH_MACHINE_PYTHON": sys.executable,
            "NIGHTBENCH_VLLM_EXECUTABLE": "/nowhere/vllm",  # only the droplets have an engine
        }
        for name, value in settings.items():
            monkeypatch.setenv(name, value)
        house.environment.update(settings)
        cloud.plant_droplet("somebody-elses")
        account = Account(cloud, fleet, image)
        account.install(engine)
        yield account


def write_suite(house: House, ttft_ms: int = 20) -> Path:
    house.write_suite(ttft_ms=ttft_ms)
    house.suite.write_text(house.suite.read_text() + MACHINE)
    return house.suite


@pytest.mark.usefixtures("prefect_api")
def test_a_night_on_digitalocean_ends_with_rows_a_bill_and_nothing_rented(house: House, account: Account) -> None:
    summary = nightly(suite=str(write_suite(house)), target="digitalocean")

    assert set(summary.verdicts) <= {"accepted", "suspect"}
    assert sum(summary.verdicts.values()) == 2
    assert house.leftovers() == []
    account.cloud.invariant()
    (lease,) = run_sql(house.data, "SELECT cloud, usd > 0, released_at IS NOT NULL FROM leases").rows
    assert tuple(lease) == ("digitalocean", True, True)
    assert len(account.cloud.requests("POST", "/v2/droplets")) == 1
    assert len(list((house.data / "runs" / summary.night).glob("servers/*.log"))) == 1
    assert list((house.data / "keys").glob("*")) == []


@pytest.mark.usefixtures("prefect_api")
def test_a_droplet_that_vanishes_in_mid_measure_ends_the_night_and_its_bill(
    house: House, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NIGHTBENCH_SSH_PATIENCE_S", "5")

    def reclaim() -> None:
        account.when_measuring()
        account.cloud.reclaim_all()

    thief = threading.Thread(target=reclaim, daemon=True)
    thief.start()
    with pytest.raises(NightbenchError, match="root@127"):
        nightly(suite=str(write_suite(house, ttft_ms=500)), target="digitalocean")
    thief.join(timeout=5)

    account.cloud.invariant()
    assert [lease.state for lease in Ledger(house.data / "ledger.sqlite").leases()] == ["released"]
    verdicts = run_sql(house.data, "SELECT DISTINCT verdict, stage FROM measurements").rows
    assert [tuple(row) for row in verdicts] == [("not-run", "machine")]


@pytest.mark.e2e
@pytest.mark.timeout(1800)
def test_the_real_engine_is_measured_on_digitalocean_from_the_command_line(house: House, account: Account) -> None:
    argv = [sys.executable, "-m", "infra.engine_env"]
    built = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True, timeout=1200)
    account.install(built.stdout.strip())
    text = (ROOT / "suites" / "local.toml").read_text()
    for ours, theirs in {**SMALLER, 'kind = "local"': 'kind = "gpu-mi300x1-192gb"'}.items():
        assert ours in text
        text = text.replace(ours, theirs)
    house.suite.write_text(text)

    done = house.cli("run", str(house.suite), "--target", "digitalocean", timeout_s=1500)

    columns = "scenario, outcome, completed, engine_version_found, ev_isl_ratio"
    asked = house.cli("sql", f"SELECT {columns} FROM measurements ORDER BY scenario", "--json")
    rows = json.loads(asked.stdout)
    assert [row["scenario"] for row in rows] == ["four-streams", "poisson", "single-stream"], done.stderr
    assert {(row["outcome"], row["ev_isl_ratio"]) for row in rows} == {("measured", 1.0)}
    assert {row["engine_version_found"].split("+")[0] for row in rows} == {"0.32.0"}
    assert house.leftovers() == []
    account.cloud.invariant()
