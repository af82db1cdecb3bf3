"""Tokens asked and got for each kind of workload, on the real engine on CPU with small generated models.

`python -m benchmarks.token_counts --record` runs 1,000 requests of each kind as one night and rewrites
docs/reference/token-counts.md; with `--data`, the rows of the kinds that the newest night there has. Each prompt is
counted three times: by the meter where it makes token ids, by the server's usage, and by the model's own tokenizer.
Each answer is counted by the server's usage and by the token ids in its stream.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.bars import Bar, Benchmark, Measured
from benchmarks.table import as_markdown, as_text
from benchmarks.token_loads import write_suite
from benchmarks.token_rows import Counted, Load, count_loads, table
from infra.engines.venv import LOCK, engine_place
from infra.models.models import prepare_model
from infra.settings import Settings
from infra.storage import store

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "token-counts.md"
REQUESTS = 1000
UNLIKE = Bar("token_counts.unlike", "requests of which two token counts differ", "requests", 0.0, is_portable=True)
FEWEST = Bar(
    "token_counts.fewest", "answered requests of each kind", "requests", REQUESTS, "at least", is_portable=True
)


@dataclass(frozen=True)
class CountedNight:
    """A row for each run that was measured, in the order of names, the names of the others, and what failed."""

    rows: tuple[Counted, ...]
    missing: tuple[str, ...]
    failures: Mapping[str, str] = field(default_factory=dict)  # by kind

    def faults(self, least: int) -> list[str]:
        """A sentence for each run that is missing, has unlike counts, or has fewer answered requests than `least`."""
        unlike = [f"{row.kind}: requests of which two counts differ: {row.unlike}" for row in self.rows if row.unlike]
        few = [
            f"{row.kind}: {row.requests} answered requests of {least}: {self.failures.get(row.kind) or 'none failed'}"
            for row in self.rows
            if row.requests < least
        ]
        return [f"{name}: not measured" for name in self.missing] + unlike + few


def count_night(data: Path, night: str, python: Path) -> CountedNight:
    """Count the tokens of each run of a night; `python` has the tokenizers' library."""
    loads, missing = [], []
    for planned in sorted(store.read_night(data, night).runs, key=lambda run: run.scenario.name):
        scenario = planned.scenario
        name = scenario.name.partition("@")[0]
        folder = data / "runs" / night / scenario.scenario_id / str(planned.repeat) / "load"
        if (folder / "meter.json").exists():
            loads.append(Load(name, folder, prepare_model(scenario.model.source, data / "models", _quiet).path))
        else:
            missing.append(name)
    failures = {load.kind: load.failures() for load in loads}
    return CountedNight(tuple(count_loads(loads, python)), tuple(missing), failures)


def _quiet(_line: str) -> None:
    """Say nothing: the models are there."""


def run_night(data: Path, folder: Path, count: int) -> None:
    """Run the night of the suite, which is written to a folder, as `nightbench run` does."""
    suite = write_suite(folder, count)
    settings = {"NIGHTBENCH_DATA": str(data), "NIGHTBENCH_MACHINE_LOCK": str(folder / "machine.lock")}
    argv = [sys.executable, "-m", "flows", "run", str(suite), "--plain"]
    # Exit code 1 is about times, which are not looked at here.
    subprocess.run(argv, env={**os.environ, **settings}, stdout=sys.stderr, check=False)


def newest(data: Path) -> CountedNight:
    """Count the newest night of a data folder."""
    return count_night(data, max(store.nights(data)), engine_place(LOCK, Settings().cache.absolute()).python)


def page(found: CountedNight, count: int) -> str:
    """The whole page."""
    missing = f"\n\nNot measured in this night: {', '.join(found.missing)}." if found.missing else ""
    return f"""# Token counts

`python -m benchmarks.token_counts --requests {count} --record` wrote these rows, each by the newest night that had its
kind. It runs {count:,} requests or more of each [kind of workload](workloads.md) on the real engine on CPU, with small
generated models. A prompt's tokens are those that the meter made (unknown for text and images), those of the server's
`usage`, and those of the model's own tokenizer, which has nothing to do where a prompt is sent as token ids. Only
answered requests are counted, so those that the client cancelled are not. An answer's tokens are those of `usage`, and
the token ids in its stream. Structured output and tool calls end by themselves, so what was requested is the most.
Embeddings have no answer tokens. `unlike` is the number of requests of which any two counts differ.

{as_markdown(table(found.rows))}{missing}
"""


def with_rows(recorded: str, made: str) -> str:
    """The page that was made, with the recorded rows of the kinds that its night did not have."""
    lines = made.splitlines(keepends=True)
    own = {_kind(line): line for line in lines if line.startswith("| ")}
    kept = {_kind(line): line for line in recorded.splitlines(keepends=True) if line.startswith("| ")}
    head, rule = list(own)[:2]
    rows = {kind: line for kind, line in sorted({**kept, **own}.items()) if kind not in (head, rule)}
    return made.replace("".join(own.values()), own[head] + own[rule] + "".join(rows.values()))


def _kind(line: str) -> str:
    return line.split("|")[1].strip()


def measure() -> Mapping[str, Measured]:
    """A night of 1,000 requests of each kind."""
    with tempfile.TemporaryDirectory(prefix="nightbench-tokens-") as name:
        run_night(Path(name) / "data", Path(name), REQUESTS)
        found = newest(Path(name) / "data")
    for fault in found.faults(REQUESTS):
        print(fault, file=sys.stderr)
    fewest = 0 if found.missing else min(row.requests for row in found.rows)
    return {
        UNLIKE.name: Measured(float(sum(row.unlike for row in found.rows))),
        FEWEST.name: Measured(float(fewest)),
    }


BENCHMARK = Benchmark("token_counts", (UNLIKE, FEWEST), measure, is_slow=True)


def main() -> None:
    """Run the night, print a row for each kind, and exit with 1 where two counts differ or a kind is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=REQUESTS, help="of each kind")
    parser.add_argument("--data", type=Path, help="count the newest night of this folder, and run none")
    parser.add_argument("--record", action="store_true", help="rewrite these rows of docs/reference/token-counts.md")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="nightbench-tokens-") as name:
        if asked.data is None:
            run_night(Path(name) / "data", Path(name), asked.requests)
        found = newest(asked.data or Path(name) / "data")
    print(as_text([table(found.rows)]))
    if asked.record:
        PAGE.write_text(with_rows(PAGE.read_text("utf-8"), page(found, asked.requests)), "utf-8")
    sys.exit("\n".join(found.faults(asked.requests)) or 0)


if __name__ == "__main__":
    main()
