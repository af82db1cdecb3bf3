"""`python -m benchmarks.history.pairs`: measure neighbouring releases in turns, a truth that the judge does not see.

A pair is one night, in a data folder of its own: both releases take turns on one lease, A B B A in each round. So the
host's drift falls out, and what is left between them is known more exactly than any night of the history tells it.
"""

import argparse
import random
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

from bench.errors import UsageError
from bench.frozen import StoredValue
from benchmarks.history.collect import Run, build_all, measure_suite
from benchmarks.history.flow_runs import collection_parser, run_nights, use_data_folder
from benchmarks.history.plan import SEED, SUITES, PlannedNight, known_releases
from benchmarks.recorded import git_commit
from flows.ab import SideOfEngine, write_ab_suite
from flows.ending import exit_code_of, handle_stop_signals
from flows.show import console
from infra.reporting import Say
from infra.settings import Settings
from infra.storage import store
from nights.durable import make_folder, write_text
from warehouse.demo.history import HISTORY
from warehouse.report.figures import csv_text
from warehouse.trends.ab import VARIANTS, compare_variants

FOLDER, FILE = "pairs", "pairs.csv"  # in the data folder, a file a pair; in the data set, a row a metric
ROUNDS = 5  # of four turns with two runs each: 20 of each release in each scenario


class Difference(StoredValue):
    """What one metric of a scenario of the newer release is beside the older; percents, with a 95 % interval."""

    scenario: str
    metric: str
    verdict: str
    effect_pct: float
    ci_lo: float | None
    ci_hi: float | None


class MeasuredPair(StoredValue):
    """Two neighbouring releases that were measured in turns; `reason` says why nothing was found."""

    engine: str
    one: str
    other: str
    rounds: int
    night: str | None
    began_at: datetime
    wall_s: float
    commit: str | None
    reason: str = ""
    found: tuple[Difference, ...] = ()


def neighbours(releases: Mapping[str, Sequence[str]], seed: int = SEED) -> list[tuple[str, str, str]]:
    """Engine, older and newer release of each pair of neighbours, in an order drawn at random."""
    found = [(engine, *pair) for engine, each in releases.items() for pair in pairwise(each)]
    random.Random(f"{seed} pairs").shuffle(found)  # noqa: S311 - an order, not a secret
    return found


def pair_file(data: Path, pair: tuple[str, str, str]) -> Path:
    """Where a measured pair is kept."""
    return data / FOLDER / f"{'-'.join(pair)}.json"


def missing_pairs(data: Path, pairs: Iterable[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """What has no file yet, also none that says why nothing was measured."""
    return [pair for pair in pairs if not pair_file(data, pair).exists()]


@dataclass(frozen=True)
class LongRun:
    """A night in which sides took turns.

    `night` is None where none began; `reason` says why nothing or only a part was measured.
    """

    rounds: int
    night: str | None
    began_at: datetime
    wall_s: float
    reason: str


def collect_pairs(
    data: Path, missing: Iterable[tuple[str, str, str]], unbuilt: Mapping[str, str], run: Run, say: Say, rounds: int
) -> None:
    """Measure these pairs, each in so many rounds and into its file; a night that was cut off is resumed."""
    for pair in missing:
        engine, *releases = pair
        reason = next((unbuilt[release] for release in releases if release in unbuilt), "")
        if reason:
            long_run = LongRun(rounds, None, datetime.now(UTC), 0.0, reason)
        else:
            suite = write_ab_suite(data, SUITES[engine], [SideOfEngine(one, one) for one in releases], rounds)
            long_run = run_sides(data, suite, rounds, run)
        keep_pair(data, pair, long_run, say)


def run_sides(data: Path, suite: Path, rounds: int, run: Run) -> LongRun:
    """Run a suite of variants that take turns, or resume its night."""
    began_at, clock = datetime.now(UTC), time.monotonic()
    night, reason = measure_suite(data, suite, {each.night for each in read_pairs(data) if each.night}, run)
    return LongRun(rounds, night, began_at, round(time.monotonic() - clock, 1), reason)


def keep_pair(
    data: Path, pair: tuple[str, str, str], long_run: LongRun, say: Say, variants: tuple[str, str] = VARIANTS
) -> None:
    """Compare two variants of a long run, and keep what was found in the file of their pair."""
    engine, one, other = pair
    night = long_run.night
    found, why_none = ((), "") if night is None else _differences(data, night, long_run.rounds, (one, other), variants)
    about = {**vars(long_run), "reason": long_run.reason or why_none}
    measured = MeasuredPair(engine=engine, one=one, other=other, commit=git_commit(), found=found, **about)
    store.write_json(pair_file(data, pair), measured)
    say(f"{engine} {one} and {other}: {len(found)} differences, {long_run.wall_s:.0f} s {long_run.reason}".rstrip())


def _differences(
    data: Path, night: str, rounds: int, sides: tuple[str, str], variants: tuple[str, str]
) -> tuple[tuple[Difference, ...], str]:
    """What the night found, or why it found nothing."""
    try:
        rows = compare_variants(data, night, rounds, sides, variants).answer()["pairs"]
    except UsageError as error:
        return (), str(error)
    names = Difference.model_fields.keys() - {"scenario"}
    return tuple(Difference(scenario=row["series"], **{name: row[name] for name in names}) for row in rows), ""


def read_pairs(data: Path) -> list[MeasuredPair]:
    """Every measured pair of a data folder."""
    files = sorted((data / FOLDER).glob("*.json"))
    return [MeasuredPair.model_validate_json(file.read_bytes()) for file in files]


def export_pairs(pairs: Sequence[MeasuredPair], folder: Path, file: str = FILE) -> Path:
    """Write them beside a history, a row a metric; of a pair that measured nothing one row, with the reason."""
    nothing = dict.fromkeys(Difference.model_fields)
    rows = [
        pair.model_dump(mode="json", exclude={"found"}) | found
        for pair in pairs
        for found in [one.model_dump(mode="json") for one in pair.found] or [nothing]
    ]
    make_folder(folder)
    write_text(folder / file, csv_text(rows))
    return folder / file


def main() -> int:
    """Continue the pairs of a data folder, and write all that are measured into the data set."""
    options = _options()
    data = options.data.absolute()
    use_data_folder(data)
    wanted = [pair for pair in neighbours(known_releases()) if options.engine in {None, pair[0]}]
    lacking = missing_pairs(data, wanted)
    console.progress(f"{len(wanted) - len(lacking)} of {len(wanted)} pairs are measured")
    missing = lacking[: options.most]
    handle_stop_signals(data)
    try:
        releases = [PlannedNight(0, engine, release) for engine, *both in missing for release in both]
        unbuilt = build_all(releases, Settings(), console.progress)
        with run_nights() as run:
            collect_pairs(data, missing, unbuilt, run, console.progress, options.rounds)
    except (KeyboardInterrupt, SystemExit) as stop:
        console.error("stopped; what was measured is kept: run the same command again")
        return exit_code_of(stop)
    console.line(str(export_pairs(read_pairs(data), HISTORY)))
    return int(bool(unbuilt))


def _options() -> argparse.Namespace:
    return with_rounds(collection_parser("benchmarks.history.pairs", main.__doc__, "pairs")).parse_args()


def with_rounds(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """The parser, with the option that says how long a run of both sides is."""
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="rounds of A B B A, with four runs of each")
    return parser


if __name__ == "__main__":
    sys.exit(main())
