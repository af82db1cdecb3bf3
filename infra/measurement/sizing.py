"""How many requests a run sends whose suite says how long its load shall take: by a short probe of its server.

A slow computer sends fewer requests and takes as long. The later repeats of a night send as many as the first.
"""

import json
import math
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.errors import LoadDriverError
from bench.metrics import request_throughput_per_s
from bench.suite.quality import Quality
from bench.suite.scenario import Scenario
from bench.suite.workload import Workload
from infra.engines.server import RunningServer
from infra.loadgen import driver
from infra.reporting import no_progress

PROBE_WAVES = 1  # requests of a probe for each one in flight


def sized(job: driver.LoadJob, running: RunningServer, runs: Path, quality: Quality) -> driver.LoadJob:
    """The job with as many requests as take `load_s`, at most `request_count`; unchanged where the suite gives no time.

    `runs` is the folder of the scenario's runs on this machine: an earlier one was sized already.
    """
    work = job.scenario.workload
    if work.load_s is None:
        return job
    count = _earlier(runs) or sized_count(work, _rate_per_s(job, running), quality.min_requests_per_slot)
    return replace(job, scenario=_with_count(job.scenario, count))


def sized_count(work: Workload, rate_per_s: float, min_requests_per_slot: float) -> int:
    """The requests that take `load_s`, at most `request_count`, where `rate_per_s` are answered.

    A closed loop sends the same number in each slot, since slots without a request at the end would slow the whole, and
    as many as the suite requires of one: with fewer, every run would be doubted.
    """
    fitting = rate_per_s * (work.load_s or 0.0)
    slots = work.concurrency
    if slots is None:
        return max(1, min(work.request_count, round(fitting)))
    return min(work.request_count, slots * max(round(fitting / slots), math.ceil(min_requests_per_slot)))


def _rate_per_s(job: driver.LoadJob, running: RunningServer) -> float:
    """Requests per second: as the suite asks in an open loop, as a probe shows in a closed one."""
    work = job.scenario.workload
    if work.request_rate_per_s is not None:
        return work.request_rate_per_s
    few = _with_count(job.scenario, min(work.request_count, PROBE_WAVES * (work.concurrency or 1)), warmup_count=0)
    with TemporaryDirectory(prefix="probe-", dir=job.machine) as name:
        probe = replace(job, scenario=few, seed=job.seed + 1, run_folder=Path(name))
        (probe.run_folder / "load").mkdir()
        driver.drive(driver.driver_argv(probe, running), probe, running, no_progress)
        requests = driver.read_driver_report(few, probe.run_folder / "load").requests
    rate = request_throughput_per_s(requests)
    if not rate:
        raise LoadDriverError(f"no request of the probe of {job.scenario.name} was answered: the server's log says why")
    return rate


def _with_count(scenario: Scenario, count: int, **more: int) -> Scenario:
    work = scenario.workload.model_copy(update={"request_count": count, **more})
    return scenario.model_copy(update={"workload": work})


def _earlier(runs: Path) -> int | None:
    """The number of requests of an earlier run of the scenario in this night."""
    for path in sorted(runs.glob("*/record.json")):
        try:
            count = json.loads(path.read_bytes())["load"]["request_count"]
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if isinstance(count, int):
            return count
    return None
