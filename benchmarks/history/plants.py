"""`python -m benchmarks.history.plants`: nights of one engine with planted changes among nights with none, blind.

Twelve nights without a change come first; then the others in an order drawn at random. No record, log or name of a
night says which change it has: only this program's journal does. Afterwards a long run of all changes and of none, in
turns on one lease, says what each does.
"""

import argparse
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from string import ascii_lowercase

from bench.engines import vllm
from benchmarks.history.collect import Run, collect, missing_nights
from benchmarks.history.flow_runs import collection_parser, run_nights, use_data_folder
from benchmarks.history.journal import read_journal
from benchmarks.history.pairs import export_pairs, keep_pair, missing_pairs, read_pairs, run_sides, with_rounds
from benchmarks.history.plan import SEED, SUITES, PlannedNight
from benchmarks.history.planted_engine import CHANGES, PLACEBO, VARIABLE, plant, write_engine
from benchmarks.history.resampled import METRICS
from benchmarks.recorded import this_host
from flows.ab import SideOfEngine, write_ab_suite
from flows.ending import exit_code_of, handle_stop_signals
from flows.show import console
from infra.engines.install import own_engine
from infra.loadgen.suite_extension import write_extension
from infra.loadgen.suite_file import read_suite
from infra.reporting import Say
from infra.settings import Settings
from nights.durable import make_folder, write_text
from warehouse.demo.history import HISTORY
from warehouse.report.figures import csv_text
from warehouse.trends.own_series import own_series

BEFORE, PLACEBOS, PLANTS = 12, 18, 5  # nights before any change, without one among the others, and of each change
# Of a night, to which none is added: what nights differ by is more than what more repeats would tell.
REPEATS = 3
NIGHTS_FILE, PAIRS_FILE = "plants.csv", "planted.csv"  # in the data set
ENGINE = "planted-engine"  # its folder
LONG_RUN_MINUTES = 180  # of its lease


def planned_plants(seed: int = SEED) -> list[PlannedNight]:
    """The nights in their order; `release` is the planted change, `is_aa` says that it is none."""
    changes = [PLACEBO] * PLACEBOS + [change for change in _changes() for _ in range(PLANTS)]
    random.Random(f"{seed} plants").shuffle(changes)  # noqa: S311 - an order, not a secret
    order = enumerate([PLACEBO] * BEFORE + changes)
    return [PlannedNight(at, vllm.NAME, change, is_aa=change == PLACEBO) for at, change in order]


def planted_pairs() -> dict[tuple[str, str, str], tuple[str, str]]:
    """Each change beside none, and the two variants of the long run that they are."""
    none, *variants = list(ascii_lowercase[: len(CHANGES)])
    return {(vllm.NAME, PLACEBO, change): (none, one) for change, one in zip(_changes(), variants, strict=True)}


def suite_of(data: Path, planned: PlannedNight) -> Path:
    """Plant the change of a night, and return the suite, which is the same for all."""
    plant(data / ENGINE, planned.release)
    path = data / "suites" / "planted.toml"
    write_extension(path, SUITES[planned.engine], f"\nrepeats = {REPEATS}\n\n[quality]\nscenario_s = 0\n")
    return path


def release() -> str:
    """The release of vLLM that all nights measure: the one of the suite."""
    suite, _digest = read_suite(SUITES[vllm.NAME], is_draft=True, target="local")
    return str(suite.engine.version)


def side_of(change: str) -> SideOfEngine:
    """The side of a long run that has this change."""
    return SideOfEngine(change, environment=(f"{VARIABLE}={change}",))


def suite_of_changes(data: Path, rounds: int) -> Path:
    """The suite of the long run: no change and all others take turns on one lease, once in each turn."""
    sides = [side_of(change) for change in (PLACEBO, *_changes())]
    path = data / "suites" / "changes.toml"
    in_turns = write_ab_suite(data, SUITES[vllm.NAME], sides, rounds, repeats=1)
    write_extension(path, in_turns, f"\n[machine]\nlease_minutes = {LONG_RUN_MINUTES}\n")
    return path


def measure_changes(data: Path, rounds: int, run: Run, say: Say) -> None:
    """Measure the long run, and keep what each change does in a file of its own."""
    long_run = run_sides(data, suite_of_changes(data, rounds), rounds, run)
    for pair, variants in planted_pairs().items():
        keep_pair(data, pair, long_run, say, variants)


def _changes() -> list[str]:
    return [change for change in CHANGES if change != PLACEBO]


def export_plants(data: Path, folder: Path) -> Path:
    """Write the value of every series in every night beside a history, in the order in which the nights ran."""
    make_folder(folder)
    write_text(folder / NIGHTS_FILE, csv_text(list(_values(data))))
    return folder / NIGHTS_FILE


def _values(data: Path) -> Iterator[dict[str, object]]:
    host = this_host()
    listed = [one for one in own_series(data) if one.key.metric in METRICS]
    for place, row in enumerate(read_journal(data).rows):  # in the order in which they ran, not that of the plan
        about = row.model_dump(mode="json", include={"began_at", "commit", "night"})
        about |= {"host": f"{host.cpu_model}, {host.cores} cores"}
        for series in listed:
            of_it = {"scenario": series.key.series.split("/")[-3], "metric": series.key.metric}
            for point in (point for point in series.valid if point.night == row.night):
                yield {"place": place, "planted": row.release, **about, **of_it, "value": point.value}


def main() -> int:
    """Continue the nights and then the long runs of a data folder, and write both into the data set."""
    options = _options()
    data = options.data.absolute()
    use_data_folder(data)
    lacking = missing_nights(data, planned_plants())
    nights = lacking[: options.most]
    console.progress(f"{len(lacking)} nights are missing")
    handle_stop_signals(data)
    try:
        engine = own_engine(Settings(vllm_executable=None), console.progress, release())
        os.environ["NIGHTBENCH_VLLM_EXECUTABLE"] = str(write_engine(data / ENGINE, engine.executable))
        with run_nights() as run:
            collect(data, nights, {}, run, console.progress, suite_of)
            if len(nights) == len(lacking) and missing_pairs(data, planted_pairs()):
                measure_changes(data, options.rounds, run, console.progress)
    except (KeyboardInterrupt, SystemExit) as stop:
        console.error("stopped; what was measured is kept: run the same command again")
        return exit_code_of(stop)
    console.line(str(export_plants(data, HISTORY)))
    console.line(str(export_pairs(read_pairs(data), HISTORY, PAIRS_FILE)))
    return 0


def _options() -> argparse.Namespace:
    parser = collection_parser("benchmarks.history.plants", __doc__, "nights", has_engines=False)
    return with_rounds(parser).parse_args()


if __name__ == "__main__":
    sys.exit(main())
