"""Searches for the release that moved a number on a real engine, beside what all nights of the history say.

`python -m benchmarks.history.bisections DATA` copies the searches of `nightbench --data DATA bisect` into the data set.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.engines.versions import is_release
from bench.trends.bisect import Bisection, Measured, Step, next_step
from bench.trends.series import Series
from benchmarks.table import Table, as_markdown
from infra.storage import store
from infra.storage.begun_nights import BISECTIONS
from nights.durable import make_folder
from warehouse.demo.history import HISTORY
from warehouse.trends.own_series import own_series


def export_bisections(data: Path, folder: Path) -> list[Path]:
    """Write the searches of a data folder beside a history, without the folders of the computer that measured them."""
    make_folder(folder / BISECTIONS)
    written = []
    for file, search in _read(data):
        written.append(folder / BISECTIONS / file.name)
        store.write_json(written[-1], search.model_copy(update={"suite": Path(search.suite).name}))
    return written


def bisections_section(data: Path, history: Path) -> str:
    """The section; nothing where there was no search. `data` is the folder in which the history is loaded."""
    searches = [search for _file, search in _read(history)]
    if not searches:
        return ""
    listed = list(own_series(data))
    rows = tuple(_row(search, of_history(search, listed)) for search in searches)
    heads = ("metric", "scenario", "from", "to", "the search says", "its nights", "all nights say", "all nights")
    return f"""
## The release that moved a number

`nightbench bisect --over versions` searched the releases for the one that moved a metric, in nights of its own. The
last columns are the same arithmetic over every night of the history. Each night starts the engine as often as any
other, so what a search saves in nights it saves in starts.

{as_markdown(Table("", heads, rows))}
"""


def of_history(search: Bisection, listed: Sequence[Series]) -> Bisection:
    """The same question, with every night of the history that measured one of its candidates."""
    nights = dict[str, tuple[str, dict[str, float]]]()
    for series in (one for one in listed if one.key.metric == search.metric and search.counts(one.key.series)):
        for point in series.valid:
            found = point.stack.get("engine_version", "")
            for candidate in (one for one in search.candidates if is_release(found, one)):
                nights.setdefault(point.night, (candidate, {}))[1][series.key.series] = point.value
    measured = tuple(
        Measured(candidate=candidate, night=night, by_series=values)
        for night, (candidate, values) in sorted(nights.items())
    )
    return search.model_copy(update={"measured": measured})


def _row(search: Bisection, exhaustive: Bisection) -> tuple[str, ...]:
    ends = (search.metric, search.scenario or "all", search.candidates[0], search.candidates[-1])
    mine, every = next_step(search), next_step(exhaustive)
    return *ends, _said(mine), str(len(search.measured)), _said(every), str(len(exhaustive.measured))


def _said(step: Step) -> str:
    return step.reason if step.candidate is None else f"{step.candidate}: {step.reason}"


def _read(folder: Path) -> Iterator[tuple[Path, Bisection]]:
    for file in sorted((folder / BISECTIONS).glob("*.json")):
        yield file, Bisection.model_validate_json(file.read_bytes())


def main(argv: list[str] | None = None) -> int:
    """Copy the searches of a data folder into the data set, and print their files."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.history.bisections", description=main.__doc__)
    parser.add_argument("data", type=Path, help="the data folder")
    for file in export_bisections(parser.parse_args(argv).data, HISTORY):
        print(file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
