"""A night's own time, over that of a plain shell script that starts the same server and drives the same loads.

`python -m benchmarks.night_overhead [--suite FILE]` prints the parts of the night. The night runs first, the script
right after it. The script is made from the night's records: the same server argv and environment, the same load
plans in the same order.
"""

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.record import RunRecord
from benchmarks.bars import Bar, Benchmark, Measured
from benchmarks.recorded import ROOT
from infra.storage.store import nights, read_night
from meter.bundle import bundle

SUITE = ROOT / "suites" / "local.toml"
OWN_SHARE = Bar("night_overhead.own_share", "own time of the local night / plain script", "%", 0.10, is_portable=True)
NIGHT_S = Bar(
    "night_overhead.night_s", "whole local night, as `make run` after set-up", "s", 360.0, baseline="plain script"
)
SCRIPT = """
set -euo pipefail
{environment} setsid {server} > server.log 2>&1 &
trap "kill -- -$!" EXIT
until curl --silent --fail {url}/health; do sleep 0.5; done
{loads}
"""


@dataclass(frozen=True)
class Night:
    """A finished night: its records in their order, and its wall times.

    `wall_s` is from the flow's start to its report, `command_s` that of the whole command.
    """

    records: tuple[RunRecord, ...]
    folders: tuple[Path, ...]
    wall_s: float
    command_s: float

    @property
    def server_s(self) -> float:
        """Seconds of server starts."""
        started = {record.server.pid: record.server.cold_start_s for record in self.records if record.server}
        return sum(seconds or 0.0 for seconds in started.values())

    @property
    def load_s(self) -> float:
        """Seconds of load."""
        return sum(record.stage_s["load"] for record in self.records)


def run_night(suite: Path, data: Path) -> Night:
    """Run the suite's night in a fresh data folder; raises CalledProcessError where a run was not accepted."""
    began = time.monotonic()
    subprocess.run(
        [sys.executable, "-m", "flows", "--data", str(data), "run", str(suite)], check=True, stdout=sys.stderr
    )
    command_s = time.monotonic() - began
    (night,) = nights(data)
    folders = [path.parent for path in (data / "runs" / night).glob("*/*/record.json")]
    found = [(RunRecord.model_validate_json((folder / "record.json").read_bytes()), folder) for folder in folders]
    found.sort(key=lambda pair: pair[0].order)
    ended = (data / "reports" / f"{night}.html").stat().st_mtime
    wall_s = ended - read_night(data, night).started_at.timestamp()
    return Night(tuple(record for record, _ in found), tuple(folder for _, folder in found), wall_s, command_s)


def script_of(night: Night, work: Path) -> str:
    """The shell script that starts the night's server and drives its loads; all loads must share one server."""
    server = night.records[0].server
    if server is None or len({record.server_id for record in night.records}) > 1:
        raise ValueError("the runs of this suite need more than one server; choose one with a single server")
    meter = work / "meter.pyz"
    bundle(meter)
    loads = []
    for at, folder in enumerate(night.folders):
        (work / str(at)).mkdir()
        loads.append(shlex.join([sys.executable, "-I", str(meter), "run", str(folder / "load-plan.json"), str(at)]))
    port = server.argv[server.argv.index("--port") + 1]
    return SCRIPT.format(
        environment=" ".join(f"{name}={shlex.quote(value)}" for name, value in server.environment.items()),
        server=shlex.join(server.argv),
        url=f"http://127.0.0.1:{port}",
        loads="\n".join(loads),
    )


def time_script(script: str, work: Path) -> float:
    """Run the script and return its wall time in seconds."""
    began = time.monotonic()
    subprocess.run(["bash", "-c", script], cwd=work, check=True, stdout=subprocess.DEVNULL, env=dict(os.environ))
    return time.monotonic() - began


@dataclass(frozen=True)
class Comparison:
    """A night beside the script that does its work."""

    night: Night
    script_s: float

    @property
    def own_s(self) -> float:
        """Seconds of the night in which no server started and no load ran."""
        return self.night.wall_s - self.night.server_s - self.night.load_s


def compare(suite: Path) -> Comparison:
    """Run the night of a suite, then the script."""
    with tempfile.TemporaryDirectory(prefix="nightbench-overhead-") as name:
        work = Path(name) / "script"
        work.mkdir()
        night = run_night(suite, Path(name) / "data")
        return Comparison(night, time_script(script_of(night, work), work))


def measure() -> Mapping[str, Measured]:
    """Compare the night of the local suite."""
    found = compare(SUITE)
    return {
        OWN_SHARE.name: Measured(found.own_s / found.script_s),
        NIGHT_S.name: Measured(found.night.command_s, found.night.command_s / found.script_s),
    }


BENCHMARK = Benchmark("night_overhead", (OWN_SHARE, NIGHT_S), measure, is_slow=True)


def main(argv: list[str] | None = None) -> None:
    """Print the parts of a night beside the script."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suite", type=Path, default=SUITE)
    found = compare(parser.parse_args(argv).suite)
    night = found.night
    print(
        f"night {night.wall_s:.1f} s = server start {night.server_s:.1f} s + loads {night.load_s:.1f} s "
        f"+ its own {found.own_s:.1f} s; script {found.script_s:.1f} s; "
        f"own / script = {found.own_s / found.script_s:.1%}; night / script = {night.wall_s / found.script_s:.2f}"
    )
    print("seconds of all runs, by stage: " + ", ".join(f"{name} {s:.1f}" for name, s in stages(night).items()))


def stages(night: Night) -> dict[str, float]:
    """Seconds that all runs of a night spent in each stage."""
    sums: dict[str, float] = {}
    for record in night.records:
        for name, seconds in record.stage_s.items():
            sums[name] = sums.get(name, 0.0) + seconds
    return sums


if __name__ == "__main__":
    main()
