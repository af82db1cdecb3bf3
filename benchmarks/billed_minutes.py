"""Billed minutes of a whole night on a rented GPU, beside those of a plain sequential script.

`python -m benchmarks.billed_minutes [--suite FILE]` prints the stages. Nothing is rented: the clock is virtual, the
cloud is the emulated DigitalOcean with its own ledger, and a stage takes its time in the plan (catalog/paces.csv). Our
night uses the real lease. The script creates a droplet with pydo, polls every ten seconds, installs, downloads, serves
once, sends the same requests in the same order, copies results back and deletes the droplet. It does not verify the
model or calibrate its client.
"""

import argparse
import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from bench.cost.estimate import CANARY, MEASURE, HostPlan, Stage, estimate_night
from bench.physics import checkpoint_bytes
from bench.plan import plan_runs
from bench.record import PlannedRun
from bench.suite.parse import parse_suite
from bench.suite.suite import Suite
from benchmarks.bars import Bar, Benchmark, Measured
from benchmarks.recorded import ROOT
from catalog.read import read_catalog
from infra.ledger.stage_costs import StageBook
from tests.emulators.digitalocean import Emulator
from tests.emulators.virtual_clock import VirtualClock
from tests.infra.rented import Rig

SUITE = ROOT / "suites" / "llama-3.3-70b-mi300x.toml"
SHARE = Bar("billed_minutes.share", "share of billed time spent measuring", "%", 0.85, "at least", is_portable=True)
RATIO = Bar("billed_minutes.ratio", "billed minutes, plain script / ours", "x", 2.0, "at least", is_portable=True)
POLL_S = 10.0  # the script's pause between two polls of the droplet or the server
CATALOG = read_catalog()


@dataclass(frozen=True)
class Billed:
    """The bill of one night by the emulator's own ledger, and the seconds of each stage."""

    seconds: float
    usd: float
    stage_s: dict[str, float]

    @property
    def measuring_share(self) -> float:
        """The share of billed time that was spent measuring."""
        return self.stage_s.get(MEASURE, 0.0) / self.seconds


@dataclass(frozen=True)
class Work:
    """The work of both: the same suite and runs, on the same machine, over the same network."""

    suite: Suite
    runs: tuple[PlannedRun, ...]
    site: HostPlan

    def stages(self, runs: Sequence[PlannedRun], *, has_snapshot: bool) -> tuple[Stage, ...]:
        """The planned stages of these runs, without the cloud's own (boot, release)."""
        site = replace(self.site, has_snapshot=has_snapshot)
        found = estimate_night(self.suite, runs, site, CATALOG).stages
        return tuple(stage for stage in found if stage.name not in ("boot", "release"))


@contextmanager
def account() -> Iterator[Rig]:
    """An emulated account whose machines take the catalogue's time to boot."""
    with tempfile.TemporaryDirectory(prefix="nightbench-billed-") as name:
        clock = VirtualClock(Path(name) / "clock")
        with Emulator(clock) as emulator:
            emulator.behaviour.delays.create_s = CATALOG.pace["boot_s"]
            yield Rig(emulator, clock, Path(name))


def ours(work: Work, *, has_snapshot: bool, lost_after: int | None = None) -> Billed:
    """A night with the real lease; after a lost machine, only its missing runs are repeated."""
    with account() as rig:
        book = StageBook(rig.folder / "ledger.sqlite", rig.clock)
        spent: dict[str, float] = {}
        parts = [work.runs] if lost_after is None else [work.runs[:lost_after], work.runs[lost_after:]]
        for runs in parts:
            lease = rig.take(minutes=600, budget_usd=None)
            for stage in work.stages(runs, has_snapshot=has_snapshot):
                if stage.billed_s:
                    with book.stage(lease.lease_id, stage.name):
                        rig.clock.sleep(stage.billed_s)
            if runs is not parts[-1]:
                rig.emulator.reclaim(int(lease.machine_id or 0))
                rig.emulator.settle()
            rig.release_lease(lease)
            for cost in book.costs(rig.ledger.lease(lease.lease_id)):
                lasted = ((cost.ended_at or rig.clock.now()) - cost.started_at).total_seconds()
                spent[cost.stage] = spent.get(cost.stage, 0.0) + lasted
        return _billed(rig, spent)


def script(work: Work, waits_s: float = 0.0, lost_after: int | None = None) -> Billed:
    """The plain script; after a lost machine it starts again from the beginning.

    `waits_s` is additional billed waiting, such as for a snapshot.
    """
    with account() as rig:
        spent: dict[str, float] = {}
        for runs in [work.runs] if lost_after is None else [work.runs[:lost_after], work.runs]:
            droplet = _create(rig, spent)
            for name, seconds in (*_script_stages(work, runs), ("snapshot", waits_s))[: None if waits_s else -1]:
                rig.clock.sleep(seconds)
                spent[name] = spent.get(name, 0.0) + seconds
            if runs is not work.runs:
                rig.emulator.reclaim(droplet)
                rig.emulator.settle()
            else:
                rig.cloud.release(str(droplet))
        return _billed(rig, spent)


def _create(rig: Rig, spent: dict[str, float]) -> int:
    client = rig.cloud._client  # noqa: SLF001 - the same client, used as a script would
    began = rig.clock.now_s()
    request = {"name": "script-1", "region": "atl1", "size": "gpu-mi300x1-192gb", "image": "gpu-amd-base"}
    droplet: int = client.droplets.create(body=request)["droplet"]["id"]
    while client.droplets.get(droplet)["droplet"]["status"] != "active":
        rig.clock.sleep(POLL_S)
    spent["boot"] = spent.get("boot", 0.0) + rig.clock.now_s() - began
    return droplet


def _script_stages(work: Work, runs: Sequence[PlannedRun]) -> Iterator[tuple[str, float]]:
    """The script's stages in order, without those that it omits."""
    planned = {stage.name: stage.seconds for stage in work.stages(runs, has_snapshot=False)}
    model = CATALOG.model(work.suite.model.source)
    rate = work.site.download_bytes_per_s or CATALOG.pace["download_bytes_per_s"]
    yield "software", planned["software"]
    yield "model", checkpoint_bytes(model, "bf16") / rate if model else 0.0
    yield "serve", math.ceil(planned["serve"] / POLL_S) * POLL_S
    yield MEASURE, sum(stage.seconds for stage in work.stages(runs, has_snapshot=False) if stage.name == MEASURE)
    yield "keep", planned["keep"]


def _billed(rig: Rig, spent: dict[str, float]) -> Billed:
    bills = [bill for bill in rig.emulator.ledger() if bill.kind == "droplet"]
    now = rig.clock.now_s()
    seconds = sum((bill.ended or now) - bill.began for bill in bills)
    return Billed(seconds, sum(bill.usd(now) for bill in bills), spent)


def read_work(path: Path, *, requests: int | None = None, download_mb_per_s: float | None = None) -> Work:
    """The work of a suite, optionally with another number of requests per scenario."""
    suite = parse_suite(path.read_text(), str(path))
    if requests is not None:
        entries = [entry.model_copy(update={"request_count": requests}) for entry in suite.scenarios]
        suite = suite.model_copy(update={"scenarios": tuple(entries), "repeats": 1})
    rate = download_mb_per_s * 1e6 if download_mb_per_s else None
    size = CATALOG.size("digitalocean", suite.machine.kind)
    return Work(suite, plan_runs(suite), HostPlan(2.59, size, download_bytes_per_s=rate))


def show_stages(nights: dict[str, Billed]) -> None:
    """Print every stage of every night, in minutes."""
    names = list(dict.fromkeys(name for night in nights.values() for name in night.stage_s))
    names.sort(key=_order)
    print(f"{'minutes':18}" + "".join(f"{name:>22}" for name in nights))
    for name in names:
        print(f"{name:18}" + "".join(f"{night.stage_s.get(name, 0.0) / 60:22.1f}" for night in nights.values()))
    sums = {
        "billed": [f"{night.seconds / 60:.1f}" for night in nights.values()],
        "USD": [f"{night.usd:.2f}" for night in nights.values()],
        "measuring": [f"{night.measuring_share:.1%}" for night in nights.values()],
        "not measuring": [f"{night.seconds / 60 * (1 - night.measuring_share):.1f}" for night in nights.values()],
    }
    for label, cells in sums.items():
        print(f"{label:18}" + "".join(f"{cell:>22}" for cell in cells))


def _order(name: str) -> int:
    known = ["boot", "software", "model", CANARY, "calibrate", "serve", MEASURE, "keep", "release"]
    return known.index(name) if name in known else len(known)


def _compare(label: str, theirs: Billed, own: Billed) -> str:
    return (
        f"{label:58} script {theirs.seconds / 60:6.1f}, ours {own.seconds / 60:6.1f} minutes; "
        f"script / ours = {theirs.seconds / own.seconds:.2f}; ours measuring {own.measuring_share:.1%}"
    )


def variants(path: Path) -> Iterator[tuple[str, Billed, Billed]]:
    """The ratio for other networks, engines and workloads, for a script that waits, and for a lost machine."""
    work, short = read_work(path), read_work(path, requests=3)
    snapshot_s = CATALOG.pace["snapshot_gb"] * CATALOG.pace["snapshot_s_per_gb"]
    cases: list[tuple[str, Work, float, int | None]] = [
        ("model download at 1 GB/s", read_work(path, download_mb_per_s=1000), 0.0, None),
        ("model download at 50 MB/s", read_work(path, download_mb_per_s=50), 0.0, None),
        ("AITER on: kernels built by the script, in our snapshot", with_kernels(work), 0.0, None),
        ("3 requests per scenario, once, as in the published report", short, 0.0, None),
        ("the same, and the script waits for a snapshot of 50 GB", short, snapshot_s, None),
        ("the machine is lost after half of the runs", work, 0.0, len(work.runs) // 2),
    ]
    for label, case, waits_s, lost_after in cases:
        yield label, script(case, waits_s, lost_after), ours(case, has_snapshot=True, lost_after=lost_after)


def with_kernels(work: Work) -> Work:
    """The same work on an engine that compiles kernels at its first start on a new machine."""
    environment = work.suite.engine.environment | {"VLLM_ROCM_USE_AITER": "1"}
    engine = work.suite.engine.model_copy(update={"environment": environment})
    suite = work.suite.model_copy(update={"engine": engine})
    return replace(work, suite=suite, runs=plan_runs(suite))


def measure() -> Mapping[str, Measured]:
    """Bill the night of the 70B suite, from a snapshot, and that of the script."""
    work = read_work(SUITE)
    warm = ours(work, has_snapshot=True)
    return {
        SHARE.name: Measured(warm.measuring_share),
        RATIO.name: Measured(script(work).seconds / warm.seconds),
    }


BENCHMARK = Benchmark("billed_minutes", (SHARE, RATIO), measure, is_slow=False)


def main(argv: list[str] | None = None) -> None:
    """Print the nights stage by stage, and how the ratio changes with the work."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suite", type=Path, default=SUITE)
    suite = parser.parse_args(argv).suite
    work = read_work(suite)
    print(f"{suite}: {len(work.suite.scenarios)} scenarios x {work.suite.repeats}, {len(work.runs)} runs")
    nights = {
        "script": script(work),
        "ours, fresh": ours(work, has_snapshot=False),
        "ours, snapshot": ours(work, has_snapshot=True),
    }
    show_stages(nights)
    least = nights["script"].stage_s[MEASURE] / nights["script"].seconds
    print(
        f"the script spends {least:.0%} of its bill on measuring: "
        f"without all other stages it would be {1 / least:.2f} x shorter"
    )
    for label, theirs, own in variants(suite):
        print(_compare(label, theirs, own))


if __name__ == "__main__":
    main()
