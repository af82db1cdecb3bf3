"""Soak: nights back to back on the schedule of `nightbench up`, while worker, server and nights are killed.

`python -m benchmarks.soak --record` runs 50 nights in miniature, about 20 minutes on two quiet cores, and rewrites
docs/reference/soak.md with what it counted; `--nights 5` is a shorter one. A known-truth server is in the engine's
place. It exits with 1 where a night has no end, something is left, memory grows, or the warehouse is not consistent.
"""

import argparse
import os
import random
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import httpx2
import psutil
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.actions import DeploymentScheduleCreate
from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterName
from prefect.client.schemas.objects import FlowRun
from prefect.client.schemas.schedules import RRuleSchedule
from prefect.exceptions import PrefectException

from bench.errors import ServerStartError
from benchmarks.soak_page import PAGE, PARTS, UNACCOUNTED, Soaked, page
from flows.service import start
from flows.service.api import reach
from flows.service.keepers import keeper_of
from flows.service.parts import MARK, Service
from flows.service.scheduled_nights import NIGHTLY
from infra.ledger.ledger import Ledger
from infra.processes import detached
from infra.processes.liveness import FOLDER
from infra.settings import Settings
from infra.storage import store
from tests.flows.conftest import make_house
from tests.flows.serving import free_port
from warehouse.lake.query import ask

KILL_EVERY = 5  # nights, of which one has a kill; all are in the first half, so that one life is long enough to judge
KINDS = ("worker", "server", "worker and night")
DELAY_MAX_S = 20.0  # of a kill after the end of the night before: a night takes about as long
FIRST_DUE_S, APART_S = 60, 5  # the schedule: a night that is due waits for the one before
GRACE_S = 1500.0  # after the time limit, for the night that runs: the reaper waits ten minutes for one that was taken
LOOK_S = 2.0
LEFT_S = 60.0  # for what ends by itself after its night, such as a watchdog
# The server restarts, or is busier than a client waits, or a part ends between two looks.
TROUBLES = (httpx.HTTPError, httpx2.HTTPError, PrefectException, ServerStartError, psutil.Error)
ROWS = "SELECT night, count(*), count(DISTINCT run_id) FROM measurements GROUP BY ALL"


@dataclass
class Soak:
    """A service in a folder of its own, and what was seen of it; `planned`: what is killed after so many nights."""

    service: Service
    suite: Path
    draw: random.Random
    planned: dict[int, str]
    due_at: datetime | None = None  # the last night
    kills: Counter[str] = field(default_factory=Counter)
    memory: dict[str, dict[int, list[float]]] = field(default_factory=lambda: {part: {} for part in PARTS})
    nights: list[FlowRun] = field(default_factory=list)

    @property
    def ended(self) -> int:
        """How many nights have ended."""
        return sum(map(_is_final, self.nights))

    def look(self, count: int, *, is_late: bool) -> None:
        """Start what does not run, as its user would, and read what became of the nights.

        The first time they are scheduled. Where it is late, those that have not begun are deleted.
        """
        keeper, before = keeper_of(self.service), self.ended if self.nights else -1
        is_whole = all(map(keeper.is_running, self.service.parts()))
        if not is_whole:
            start.up(self.service, _say)
        with reach(self.service) as client:
            if not is_whole:
                client.create_flow_run_from_deployment(client.read_deployment_by_name("reap/reap").id)
            if self.due_at is None:
                self._schedule(client, count)
            only = DeploymentFilter(name=DeploymentFilterName(any_=["nightly"]))
            runs = client.read_flow_runs(deployment_filter=only)
            self.nights = [run for run in runs if run.parameters.get("suite") == str(self.suite)]
            for run in self.nights:
                if is_late and run.state is not None and run.state.is_scheduled():
                    client.delete_flow_run(run.id)
        if self.nights and self.ended > before:
            self.sample()

    def _schedule(self, client: SyncPrefectClient, count: int) -> None:
        """Add a schedule of so many nights to the deployment."""
        first = datetime.now(UTC) + timedelta(seconds=FIRST_DUE_S)
        rule = f"DTSTART:{first:%Y%m%dT%H%M%S}\nRRULE:FREQ=SECONDLY;INTERVAL={APART_S};COUNT={count}"
        own = {"suite": str(self.suite), "target": "local"}
        schedule = DeploymentScheduleCreate(schedule=RRuleSchedule(rrule=rule), active=True, parameters=own)
        nightly = client.read_deployment_by_name(NIGHTLY)
        client.create_deployment_schedules(nightly.id, [schedule])
        self.due_at = first + timedelta(seconds=APART_S * count)

    def sample(self) -> None:
        """Note the memory (MiB) of server and worker, by process."""
        for part, lives in self.memory.items():
            pid = self._pid(part)
            lives.setdefault(pid, []).append(psutil.Process(pid).memory_info().rss / (1 << 20))
        now = ", ".join(f"{part} {[*lives.values()][-1][-1]:.0f} MiB" for part, lives in self.memory.items())
        _say(f"{self.ended} of {len(self.nights)} nights have ended: {now}")

    def kill(self, kind: str) -> None:
        """Kill a part as the kernel does where memory runs out."""
        time.sleep(self.draw.uniform(0, DELAY_MAX_S))
        _say(f"killing: {kind}")
        victims = [psutil.Process(self._pid(kind.partition(" ")[0]))]
        if kind == KINDS[-1]:
            victims += detached.marked(str(self.service.data), MARK)
        for process in victims:
            process.kill()
        psutil.wait_procs(victims, timeout=LEFT_S)
        self.kills[kind] += 1

    def run(self, count: int, limit_s: float) -> None:
        """Return once every night has ended, or all that had begun within the limit."""
        began = time.monotonic()
        while (passed_s := time.monotonic() - began) < limit_s + GRACE_S:
            time.sleep(LOOK_S)
            try:
                self.look(count, is_late=passed_s > limit_s)
                if self.nights and self.ended in self.planned:
                    self.kill(self.planned.pop(self.ended))
                elif self.due_at and datetime.now(UTC) > self.due_at and self.ended == len(self.nights):
                    return
            except TROUBLES as error:
                _say(f"looks again: {error}")

    def _pid(self, part: str) -> int:
        return int((self.service.folder / f"{part}.pid").read_text("utf-8").split()[0])


def soak(folder: Path, count: int, minutes: float, seed: int) -> Soaked:
    """Run so many nights and return what was counted; nothing of the service runs after it."""
    it, began = _prepare(folder, count, random.Random(seed)), time.monotonic()  # noqa: S311 - the same kills each time
    try:
        it.run(count, minutes * 60)
    finally:
        start.down(it.service, _say, stop_night=True)
    data = it.service.data
    ended = Counter(str(run.state_name) if _is_final(run) else UNACCOUNTED for run in it.nights)
    killed = Counter(kind.partition(" ")[0] for kind in it.kills.elements())
    return Soaked(
        planned=count,
        minutes=(time.monotonic() - began) / 60,
        seed=seed,
        ended=dict(ended),
        kills=dict(it.kills),
        stopped=dict(Counter({part: len(lives) - 1 for part, lives in it.memory.items()}) - killed),
        left=tuple(_left(data)),
        inconsistent=tuple(_inconsistent(data, ended.total() - ended["Crashed"] - ended[UNACCOUNTED])),
        loaded=len(ask(data, ROWS).rows),
        memory={part: tuple(lives.values()) for part, lives in it.memory.items()},
    )


def _prepare(folder: Path, count: int, draw: random.Random) -> Soak:
    house = make_house(folder, folder / "prefect")
    os.environ.update({name: value for name, value in house.environment.items() if name.startswith("NIGHTBENCH_")})
    os.environ["NIGHTBENCH_MACHINE_LOCK"] = str(folder / "machine.lock")
    os.environ["XDG_RUNTIME_DIR"] = str(folder)  # no systemd of this user
    os.environ["PREFECT_WORKER_QUERY_SECONDS"] = "2"
    start.READY_S = 600.0  # other programs may keep this computer busy
    victims = draw.sample(range(max(1, count // 2)), max(1, count // KILL_EVERY))
    planned = {at: KINDS[number % len(KINDS)] for number, at in enumerate(victims)}
    return Soak(Service(Settings(service_port=free_port(), pages_port=free_port())), house.suite, draw, planned)


def _left(data: Path) -> list[str]:
    """What a night or the service must not leave: leases, machines, liveness locks, processes."""
    until = time.monotonic() + LEFT_S
    while True:
        leases = [f"lease {lease.lease_id}" for lease in Ledger(data / "ledger.sqlite").open_leases()]
        files = [str(path) for name in ("machines", FOLDER) for path in (data / name).glob("[!.]*")]
        running = [f"process {one.pid} {one.name()}" for one in detached.all_processes() if _is_of(one, data)]
        found = [*leases, *files, *running]
        if not found or time.monotonic() > until:
            return found
        time.sleep(LOOK_S)


def _is_of(process: psutil.Process, data: Path) -> bool:
    try:
        named = " ".join([*process.cmdline(), *process.environ().values()])
        return str(data) in named and process.pid != os.getpid() and process.status() != psutil.STATUS_ZOMBIE
    except (OSError, psutil.Error):
        return False


def _inconsistent(data: Path, ended: int) -> list[str]:
    """Nights whose rows are not those of their plan, and how many ended with results that are not loaded."""
    planned = {night: len(store.read_night(data, night).runs) for night in store.nights(data)}
    rows = ask(data, ROWS).rows
    found = [
        f"night {night}: {count} rows of {distinct} runs, {planned.get(night, 0)} were planned"
        for night, count, distinct in rows
        if not count == distinct == planned.get(night)
    ]
    return found if len(rows) >= ended else [*found, f"{ended - len(rows)} nights that ended are not in the warehouse"]


def _is_final(run: FlowRun) -> bool:
    return run.state is not None and run.state.is_final()


def _say(text: str) -> None:
    print(f"{datetime.now(UTC):%H:%M:%S} {text}", flush=True)


def main() -> None:
    """Run the nights, print what was counted, and exit with 1 where it is not as it must be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nights", type=int, default=50)
    parser.add_argument("--minutes", type=float, default=240.0, help="after these, no further night is begun")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--record", action="store_true", help="rewrite docs/reference/soak.md")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="nightbench-soak-") as name:
        found = soak(Path(name), asked.nights, asked.minutes, asked.seed)
    print(page(found))
    if asked.record:
        PAGE.write_text(page(found), "utf-8")
    sys.exit(0 if found.is_good else 1)


if __name__ == "__main__":
    main()
