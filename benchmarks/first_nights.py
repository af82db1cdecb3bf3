"""First nights as a new user runs them: quiet, and beside two busy processes; and a slow-down of the engine in each.

`python -m benchmarks.first_nights --quiet 2 --busy 1` adds two quiet pairs and a busy one to the pairs of a file, and
prints the bars over all of them, and how fast the cores were. The bars are meant for ten quiet pairs and ten busy ones:
40 nights of two to four minutes, which fit into several evenings. `make bench` reads the file. A pair is a night of the
local suite, and one whose engine was started with flags that give its model more layers; weights are made up in both,
so they may differ.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.bars import Bar, Benchmark, Measured, NotMeasuredError, Source
from benchmarks.night_overhead import SUITE
from benchmarks.recorded import ROOT
from benchmarks.table import shown
from benchmarks.told_apart import Repeats, slow_down
from infra.storage.store import nights
from nights.durable import write_text
from warehouse.lake.query import run_sql

FILE = ROOT / "build" / "first-nights.json"
DRIFTED = 0.95  # speed of the cores, from which on repeats cannot agree within 5 %
MADE_UP = '"--load-format", "dummy"'
# 15 % slower, of 8 layers and 1408: 9 layers alone cost 11 %, 10 cost 22 %, and this has 16 % more weights to read.
SLOW = """"--hf-overrides", '{"num_hidden_layers": 9, "intermediate_size": 1536}'"""
BUSY = {  # a compile, and something that writes: as stress-ng's --cpu 1 and --io 1
    "busy_cpu": "while True: pass",
    "busy_disk": "import os\nwith open('block', 'wb') as f:\n while True: f.seek(0); f.write(b'x' * 4096); os.fsync(f)",
}
EXITS = Bar("first_nights.exit_0", "nights that exit with 0", "%", 1.0, "at least", is_portable=True)
REJECTED = Bar("first_nights.rejected", "rows that are rejected", "rows", 0.0, is_portable=True)
NAMED = Bar(
    "first_nights.named", "unstable rows of busy nights whose busy_host names the process", "%", 1.0, "at least"
)
ACCEPTED = Bar("first_nights.accepted", "accepted rows of quiet nights", "%", 0.95, "at least")
TOLD_QUIET = Bar("first_nights.told_quiet", "slow-downs told from noise, quiet", "%", 0.9, "at least")
TOLD_BUSY = Bar("first_nights.told_busy", "slow-downs told from noise, busy", "%", 0.9, "at least")
FIRST_S = Bar("first_nights.first_s", "a quiet night in a new data folder, the engine installed", "s", 240.0)
SECOND_S = Bar("first_nights.second_s", "the quiet night after it", "s", 120.0)
BARS = (EXITS, REJECTED, NAMED, ACCEPTED, TOLD_QUIET, TOLD_BUSY, FIRST_S, SECOND_S)
ROWS = """
SELECT scenario, verdict, is_first_after_start, coalesce(is_wide, false) AS is_wide, coalesce(said, '') AS said,
       if(arrivals = 'closed', 1 / output_throughput_tok_per_s, e2el_p50_ms) AS seconds, core_work_ms
FROM measurements LEFT JOIN (
    SELECT night, run_id, bool_or(code = 'unstable' AND status = 'WARN') AS is_wide,
           string_agg(code || ' ' || message, '; ') FILTER (severity <> 'info') AS said
    FROM findings GROUP BY ALL
) USING (night, run_id)
WHERE night = ?
"""


@dataclass(frozen=True)
class Night:
    """One night: how it ended, how long its command took, and its rows."""

    exit_code: int
    seconds: float
    rows: tuple[Mapping[str, Any], ...]

    def repeats(self) -> Repeats:
        """By scenario, a time of each repeat that counts: less is faster."""
        found: dict[str, list[float]] = {}
        for row in self.rows:
            if row["seconds"] and not row["is_first_after_start"]:
                found.setdefault(row["scenario"], []).append(row["seconds"])
        return found


@dataclass(frozen=True)
class Pair:
    """A night as it is, and one whose engine is slower."""

    usual: Night
    slower: Night

    @property
    def is_told(self) -> bool:
        """Whether the 95 % interval of the slow-down is above zero."""
        found = slow_down(self.usual.repeats(), self.slower.repeats())
        return found is not None and found.low > 0


def run_night(data: Path, flags: str) -> Night:
    """A night of the local suite whose engine has these flags too."""
    suite = data.parent / "local.toml"
    suite.write_text(SUITE.read_text().replace('"--enforce-eager"', f'"--enforce-eager", {flags}'))
    began = time.monotonic()
    argv = [sys.executable, "-m", "flows", "--data", str(data), "run", "--plain", str(suite)]
    ran = subprocess.run(argv, check=False, stdout=sys.stderr)
    seconds = time.monotonic() - began
    rows = run_sql(data, ROWS, (nights(data)[-1],)).dicts()
    return Night(ran.returncode, seconds, tuple(rows))


def run_pair() -> Pair:
    """Two nights in a new data folder; their difference is said."""
    with tempfile.TemporaryDirectory(prefix="nightbench-first-") as name:
        data = Path(name) / "data"
        pair = Pair(run_night(data, MADE_UP), run_night(data, f"{MADE_UP}, {SLOW}"))
    print(f"exit {pair.usual.exit_code}, {pair.slower.exit_code}; slow-down {slow_down_in_words(pair)}", flush=True)
    return pair


def slow_down_in_words(pair: Pair) -> str:
    """By how much the second night is slower, with its interval."""
    found = slow_down(pair.usual.repeats(), pair.slower.repeats())
    return "unknown" if found is None else f"{found.share:.1%} ({found.low:.1%} to {found.high:.1%})"


@contextmanager
def busy_processes() -> Iterator[None]:
    """Two processes that keep this computer busy, by the names of BUSY; ended afterwards."""
    with tempfile.TemporaryDirectory(prefix="nightbench-busy-") as folder:
        started = []
        try:
            for name, program in BUSY.items():
                path = Path(folder) / name
                path.symlink_to(Path(sys.executable).resolve())
                environment = os.environ | {"PYTHONHOME": sys.base_prefix}
                started.append(subprocess.Popen([path, "-c", program], cwd=folder, env=environment))
            yield
        finally:
            for process in started:
                process.kill()
                process.wait()


@dataclass
class Pairs:
    """Every pair so far, the quiet ones and the busy ones."""

    quiet: list[Pair] = field(default_factory=list)
    busy: list[Pair] = field(default_factory=list)

    def run(self, quiet: int, busy: int) -> Iterator[None]:
        """Run so many pairs more, the quiet ones first; each is known when this yields."""
        for _ in range(quiet):
            self.quiet.append(run_pair())
            yield
        for _ in range(busy):
            with busy_processes():
                self.busy.append(run_pair())
            yield


def read_measured(file: Path = FILE) -> Mapping[str, Measured]:
    """The value of each bar, of all pairs that a file holds."""
    if not file.exists():
        command = "python -m benchmarks.first_nights --quiet 10 --busy 10"
        raise NotMeasuredError(f"build/{file.name} is missing; run {command}, which takes two hours")
    source = Source.written_here(file)
    return {name: replace(one, source=source) for name, one in bars_of(read_pairs(file)).items()}


def bars_of(pairs: Pairs) -> Mapping[str, Measured]:
    """The value of each bar, of those that these pairs can tell."""
    quiet, busy = pairs.quiet, pairs.busy
    every = [night for pair in (*quiet, *busy) for night in (pair.usual, pair.slower)]
    calm = [row for pair in quiet for night in (pair.usual, pair.slower) for row in night.rows]
    wide = [row for pair in busy for night in (pair.usual, pair.slower) for row in night.rows if row["is_wide"]]
    found = {
        EXITS: [float(night.exit_code == 0) for night in every],
        NAMED: [float(_is_named(row)) for row in wide],
        ACCEPTED: [float(row["verdict"] == "accepted") for row in calm],
        TOLD_QUIET: [float(pair.is_told) for pair in quiet],
        TOLD_BUSY: [float(pair.is_told) for pair in busy],
    }
    values = {bar: sum(known) / len(known) for bar, known in found.items() if known}
    values[REJECTED] = float(sum(row["verdict"] == "rejected" for night in every for row in night.rows))
    if quiet:
        values[FIRST_S] = max(pair.usual.seconds for pair in quiet)
        values[SECOND_S] = max(pair.slower.seconds for pair in quiet)
    return {bar.name: Measured(value) for bar, value in values.items()}


def core_speed_in_words(pairs: Sequence[Pair]) -> str:
    """How fast the cores of this host were in these nights, and how many rows that are not accepted this may explain.

    A file of before has no speeds.
    """
    every = [night for pair in pairs for night in (pair.usual, pair.slower)]
    took_ms = [row["core_work_ms"] for night in every for row in night.rows if row.get("core_work_ms")]
    if not took_ms:
        return "speed of the cores: not measured"
    of_scenario = [rows for night in every for rows in _by_scenario(night.rows)]
    doubted = [(row, rows) for rows in of_scenario for row in rows if row["verdict"] != "accepted"]
    drifted = sum(_lowest_speed(rows) < DRIFTED for _row, rows in doubted)
    within = [_lowest_speed(night.rows) for night in every]
    return (
        f"speed of the cores: a fixed piece of work took {min(took_ms):.3g} to {max(took_ms):.3g} ms, so they ran at "
        f"{min(took_ms) / max(took_ms):.0%} to 100% of their best speed; lowest of one night: {min(within):.0%}; "
        f"{drifted} of {len(doubted)} rows that are not accepted are of a scenario whose repeats ran at less than "
        f"{DRIFTED:.0%} of the speed of its fastest"
    )


def _by_scenario(rows: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    names = dict.fromkeys(row["scenario"] for row in rows)
    return [[row for row in rows if row["scenario"] == name] for name in names]


def _lowest_speed(rows: Sequence[Mapping[str, Any]]) -> float:
    """The lowest speed of the cores in these rows, as a share of the fastest; 1 where it is not known."""
    took_ms = [row["core_work_ms"] for row in rows if row.get("core_work_ms")]
    return min(took_ms) / max(took_ms) if took_ms else 1.0


def _is_named(row: Mapping[str, Any]) -> bool:
    """Whether a wide row is suspect, and its busy_host names one of the processes of BUSY."""
    return row["verdict"] == "suspect" and "busy_host" in row["said"] and any(name in row["said"] for name in BUSY)


BENCHMARK = Benchmark("first_nights", BARS, read_measured, is_slow=False)


def main() -> None:
    """Run pairs, and print the value of each bar, of all pairs that the file holds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quiet", type=int, default=0, help="pairs to run")
    parser.add_argument("--busy", type=int, default=0, help="pairs to run beside two busy processes")
    parser.add_argument("--into", type=Path, default=FILE, help="the file of pairs (default: %(default)s)")
    asked = parser.parse_args()
    pairs = read_pairs(asked.into)
    asked.into.parent.mkdir(parents=True, exist_ok=True)
    for _ in pairs.run(asked.quiet, asked.busy):
        write_text(asked.into, json.dumps(asdict(pairs)))
    print(f"{len(pairs.quiet)} quiet pairs, {len(pairs.busy)} busy ones")
    found = bars_of(pairs)
    for bar in (one for one in BARS if one.name in found):
        value, limit = shown(bar, found[bar.name].value), shown(bar, bar.limit)
        print(f"{bar.name}: {value} ({bar.direction} {limit}): {bar.what}")
    for kind, run in (("quiet", pairs.quiet), ("busy", pairs.busy)):
        print(f"{kind}, {core_speed_in_words(run)}")


def read_pairs(path: Path) -> Pairs:
    """The pairs of a file, none where there is no file yet."""
    held = json.loads(path.read_text()) if path.exists() else {}
    return Pairs(
        **{kind: [Pair(*(Night(**night) for night in pair.values())) for pair in kept] for kind, kept in held.items()}
    )


if __name__ == "__main__":
    main()
