"""Write a data folder of simulated nights, judge their series, and write its site."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from bench.errors import UsageError
from bench.trends.judgement import NightJudgement, SaidChange, SeriesVerdict
from bench.trends.series import Series
from bench.trends.tonight import judge_series, known_of
from nights.durable import make_folder, write_text
from warehouse.demo.rows import night_rows, with_every_column
from warehouse.demo.story import BAD_HOST, NIGHTS, SimulatedNight, story
from warehouse.lake.database import build_warehouse
from warehouse.lake.lake import STAGING, one_loader, write_rows, writing
from warehouse.lake.months import stage_months
from warehouse.lake.swap import swap_in
from warehouse.report.simulated import MARK
from warehouse.site.write import write_site
from warehouse.trends.kept import stage_judgement
from warehouse.trends.own_series import own_series

NIGHT_PAGES = 7  # newest nights with a page of their own: with the bad host and the failed night
MARK_TEXT = f"Every number in this folder is simulated: {NIGHTS} nights that `nightbench demo` wrote. No engine ran.\n"


def write_demo(folder: Path) -> Path:
    """Write the folder with its site and return the site's start page; a folder that is whole already stays as it is.

    Raises UsageError if the folder holds something else, LoadIntoWarehouseError if it cannot be written.
    """
    start = folder / "site" / "index.html"
    if begin_demo(folder, MARK, MARK_TEXT):
        return start
    nights = list(story())
    _write_nights(folder, nights)
    # The night after the bad host measures again what was suspect, on another host.
    rerun_of = {nights[BAD_HOST + 1].name: nights[BAD_HOST].name}
    judge_nights(folder, {night.name: night.started_at + timedelta(hours=1) for night in nights}, rerun_of)
    return write_site(folder, start.parent, NIGHT_PAGES).index


def begin_demo(folder: Path, mark: str, text: str) -> bool:
    """Mark a folder as that of a demo; whether it is whole already.

    Raises UsageError if it holds something else, LoadIntoWarehouseError if it cannot be written.
    """
    file = folder / mark
    if not file.is_file() and folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} holds something else: name a folder that is new, as in `nightbench demo FOLDER`")
    if (folder / "site" / "index.html").is_file() and file.read_text(encoding="utf-8") == text:
        return True
    with writing(folder):
        make_folder(folder)
        write_text(file, text)
    return False


def _write_nights(folder: Path, nights: list[SimulatedNight]) -> None:
    with writing(folder / "lake"), one_loader(folder) as lake:
        for night in nights:
            for table, rows in night_rows(night).items():
                write_rows(lake / STAGING, table, night.name, with_every_column(table, rows))
        swap_in(lake)
        build_warehouse(folder)


def judge_nights(folder: Path, said_at: Mapping[str, datetime], rerun_of: Mapping[str, str]) -> None:
    """Judge each night as it was judged when it was the newest; `rerun_of` names the night that one measures again."""
    listed = list(own_series(folder))
    said: list[SaidChange] = []
    verdicts: list[SeriesVerdict] = []
    with writing(folder / "lake"), one_loader(folder) as lake:
        for night, at in said_at.items():
            until, again = [_until(series, night) for series in listed], rerun_of.get(night)
            found, changes = judge_series(until, night, known_of(said, verdicts), said, again)
            said += changes
            verdicts += [one for one in found if one.judgement == "host outlier"]
            judgement = NightJudgement(
                night=night, said_at=at, rerun_of=again, verdicts=tuple(found), changes=tuple(changes)
            )
            stage_judgement(lake / STAGING, night, judgement)
        stage_months(lake, loose_nights=1)  # a file a month, which the pages read faster than one a night
        swap_in(lake)
        build_warehouse(folder)


def _until(series: Series, night: str) -> Series:
    return replace(series, points=tuple(point for point in series.points if point.night <= night))
