"""Write a data folder of simulated nights, judge their series, and write its site."""

from dataclasses import replace
from datetime import timedelta
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
    mark, start = folder / MARK, folder / "site" / "index.html"
    if not mark.is_file() and folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} holds something else: name a folder that is new, as in `nightbench demo FOLDER`")
    if start.is_file() and mark.read_text(encoding="utf-8") == MARK_TEXT:
        return start
    with writing(folder):
        make_folder(folder)
        write_text(mark, MARK_TEXT)
    nights = list(story())
    _write_nights(folder, nights)
    _judge(folder, nights)
    return write_site(folder, start.parent, NIGHT_PAGES).index


def _write_nights(folder: Path, nights: list[SimulatedNight]) -> None:
    with writing(folder / "lake"), one_loader(folder) as lake:
        for night in nights:
            for table, rows in night_rows(night).items():
                write_rows(lake / STAGING, table, night.name, with_every_column(table, rows))
        swap_in(lake)
        build_warehouse(folder)


def _judge(folder: Path, nights: list[SimulatedNight]) -> None:
    """Judge each night as it was judged when it was the newest."""
    listed = list(own_series(folder))
    said: list[SaidChange] = []
    verdicts: list[SeriesVerdict] = []
    with writing(folder / "lake"), one_loader(folder) as lake:
        for night in nights:
            # The night after the bad host measures again what was suspect, on another host.
            rerun_of = nights[BAD_HOST].name if night.at == BAD_HOST + 1 else None
            until = [_until(series, night.name) for series in listed]
            found, changes = judge_series(until, night.name, known_of(said, verdicts), said, rerun_of)
            said += changes
            verdicts += [one for one in found if one.judgement == "host outlier"]
            judgement = NightJudgement(
                night=night.name,
                said_at=night.started_at + timedelta(hours=1),
                rerun_of=rerun_of,
                verdicts=tuple(found),
                changes=tuple(changes),
            )
            stage_judgement(lake / STAGING, night.name, judgement)
        stage_months(lake, loose_nights=1)  # a file a month, which the pages read faster than one a night
        swap_in(lake)
        build_warehouse(folder)


def _until(series: Series, night: str) -> Series:
    return replace(series, points=tuple(point for point in series.points if point.night <= night))
