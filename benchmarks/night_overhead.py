"""A night's own time, over that of a plain shell script that starts the same server and drives the same loads.

`python -m benchmarks.night_overhead [--suite FILE]`. The night goes first, the script right after it. What the script
runs is read from the night's records: the same server argv and environment, the same load plans in the same order.
"""

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from bench.record import RunRecord
from infra.storage.store import nights, read_night
from meter.bundle import bundle

BAR = 0.15
SCRIPT = """
set -euo pipefail
{environment} setsid {server} > server.log 2>&1 &
trap "kill -- -$!" EXIT
until curl --silent --fail {url}/health; do sleep 0.5; done
{loads}
"""


@dataclass(frozen=True)
class Night:
    """A finished night: its records in their order, and how long it took from the flow's start to its report."""

    records: tuple[RunRecord, ...]
    folders: tuple[Path, ...]
    wall_s: float

    @property
    def server_s(self) -> float:
        """Seconds in which servers started."""
        started = {record.server.pid: record.server.cold_start_s for record in self.records if record.server}
        return sum(started.values())

    @property
    def load_s(self) -> float:
        """Seconds in which loads were driven."""
        return sum(record.stage_s["load"] for record in self.records)


def run_night(suite: Path, data: Path) -> Night:
    """Run the suite's night in a fresh data folder; raises CalledProcessError where a run was not accepted."""
    subprocess.run([sys.executable, "-m", "flows", "--data", str(data), "run", str(suite)], check=True)
    (night,) = nights(data)
    folders = [path.parent for path in (data / "runs" / night).glob("*/*/record.json")]
    found = [(RunRecord.model_validate_json((folder / "record.json").read_bytes()), folder) for folder in folders]
    found.sort(key=lambda pair: pair[0].order)
    ended = (data / "reports" / f"{night}.html").stat().st_mtime
    wall_s = ended - read_night(data, night).started_at.timestamp()
    return Night(tuple(record for record, _ in found), tuple(folder for _, folder in found), wall_s)


def script_of(night: Night, work: Path) -> str:
    """The shell script that starts the night's server and drives its loads; it needs one server for all of them."""
    server = night.records[0].server
    if server is None or len({record.server_id for record in night.records}) > 1:
        raise SystemExit("this benchmark needs a suite whose runs were all measured on one server")
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
    """Seconds that the script takes."""
    began = time.monotonic()
    subprocess.run(["bash", "-c", script], cwd=work, check=True, stdout=subprocess.DEVNULL, env=dict(os.environ))
    return time.monotonic() - began


def main(argv: list[str] | None = None) -> None:
    """Print the night's own time as a share of the script's."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suite", type=Path, default=Path("suites/local.toml"))
    asked = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="nightbench-overhead-") as name:
        work = Path(name) / "script"
        work.mkdir()
        night = run_night(asked.suite, Path(name) / "data")
        script_s = time_script(script_of(night, work), work)
    own_s = night.wall_s - night.server_s - night.load_s
    print(
        f"night {night.wall_s:.1f} s = server start {night.server_s:.1f} s + loads {night.load_s:.1f} s "
        f"+ its own {own_s:.1f} s; script {script_s:.1f} s; "
        f"own / script = {own_s / script_s:.1%} (bar {BAR:.0%}); night / script = {night.wall_s / script_s:.2f}"
    )


if __name__ == "__main__":
    main()
