"""What the Prefect UI shows of a night: its plan, a progress bar, a summary, its tables, and a link to the report."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from uuid import UUID, uuid4

from prefect.artifacts import (
    create_link_artifact,
    create_markdown_artifact,
    create_progress_artifact,
    create_table_artifact,
    update_progress_artifact,
)

from bench.night_progress import LoadProgress
from bench.plan import cells
from bench.record import NightRecord
from infra.settings import Settings
from tasks.night_notice import page_link
from tasks.night_tables import EXPLAINED, TABLES, summary_text
from tasks.progress import STREAM
from tasks.server_calls import post
from tasks.task import night_task
from warehouse.lake.database import opened_once, these_nights_alone
from warehouse.lake.query import ask

# The server's ids of progress bars by ours: a bar has an id before the server has responded.
BARS: dict[UUID, UUID] = {}


@night_task("show plan", shown="show plan of {night.night}", is_stage=False)
def show_plan(settings: Settings, night: NightRecord) -> None:
    """Publish the plan as a table."""
    del settings
    rows = [_with_last(asdict(cell), "scenario_id") for cell in cells(night.runs)]
    description = f"Plan of night {night.night}, suite {night.suite.name}"
    post("the plan", partial(create_table_artifact, rows, key="plan", description=description))


def start_progress(night: NightRecord, missing: int) -> UUID:
    """Create the night's progress bar in the flow run that calls this; a resumed night starts at its finished share."""
    bar = uuid4()

    def create() -> None:
        done_percent = 100 * (1 - missing / len(night.runs))
        description = f"Runs of night {night.night}"
        BARS[bar] = UUID(str(create_progress_artifact(done_percent, key="progress", description=description)))

    post("the progress", create)
    return bar


class NightProgress:
    """One live progress bar for the night: finished runs plus the share done of the one in progress.

    `elsewhere` counts the runs of the night's other machines: those that are finished, and all.

    It is for display only: no call waits for Prefect's server, which gets the newest value when it responds.
    """

    def __init__(
        self, total: int, done: int, artifact: UUID, elsewhere: Callable[[], tuple[int, int]] = lambda: (0, 0)
    ) -> None:
        self._total = total
        self._elsewhere = elsewhere
        self._done = done
        self._bar = artifact
        self.within_run(LoadProgress(0.0))

    def _percent(self, share: float) -> float:
        finished, planned = self._elsewhere()
        return round(100 * (self._done + finished + share) / (self._total + planned), 1)

    def within_run(self, load: LoadProgress) -> None:
        """Show the share done of the run in progress, and what a terminal would show of it."""
        percent, description = self._percent(load.share), progress_line()

        def update() -> None:
            if self._bar in BARS:
                update_progress_artifact(BARS[self._bar], percent, description)

        post("the progress", update, self._bar)

    def run_is_over(self, waiting: int | None = None) -> None:
        """Count one more finished run; so many are `waiting`, where another may have followed from it."""
        self._done += 1
        self._total = self._total if waiting is None else self._done + waiting
        self.within_run(LoadProgress(0.0))


def progress_line() -> str:
    """The night's state in one line: what it does, how long is left, and its cost."""
    now = time.monotonic()
    with STREAM.lock:
        return STREAM.state.line(now)


@night_task("show results", shown="show results of {night}", is_stage=False)
def show_results(settings: Settings, night: str, page: Path) -> None:
    """Publish a summary, the tables of the night, and a link to the report."""
    data = settings.data.absolute()
    link = page_link(settings, night)
    with opened_once(data), these_nights_alone(data, [night]):
        shown = [(key, ask(data, sql, (night,)).dicts()) for key, sql in TABLES.items()]
        summary = summary_text(data, night, link)
    post("the summary", partial(create_markdown_artifact, summary, key="summary", description=f"Night {night}"))
    for key, found in shown:
        show_table(key, found, f"{key.capitalize()} of night {night}{EXPLAINED.get(key, '')}")
    # Browsers do not open a local file from a web page, so the description holds the path to copy.
    text, path = f"Report of night {night}", str(page)
    post("the report", partial(create_link_artifact, link, link_text=text, key="report", description=path))


def show_table(key: str, found: Sequence[Mapping[str, object]], description: str) -> None:
    """Publish rows as a table of the flow run that calls this; a run that ends without waiting for it may lose it."""
    post(f"the {key}", partial(create_table_artifact, table_rows(found), key=key, description=description))


def table_rows(found: Sequence[Mapping[str, object]]) -> list[dict[str, object]]:
    """Rows as a table shows them: numbers to three decimals, and everything else as text."""
    return [{name: _shown(value) for name, value in row.items()} for row in found]


def _with_last(row: dict[str, object], name: str) -> dict[str, object]:
    """The row with one column at its end, which may be out of sight in the UI."""
    return {**{key: value for key, value in row.items() if key != name}, name: row[name]}


def _shown(value: object) -> object:
    if isinstance(value, float):
        return round(value, 3)
    return value if isinstance(value, (int, bool, type(None))) else str(value)
