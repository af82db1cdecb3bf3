"""What else happened on the host while it measured: other processes, waiting for a core, and heat where it is known."""

from pathlib import Path

from markupsafe import Markup

from warehouse.report.markup import NOTHING, details, table_html
from warehouse.report.night.bars import Measure, bars
from warehouse.report.pictures import Answer, asked, picture_html
from warehouse.schema.columns import COLUMNS
from warehouse.schema.row import Row
from warehouse.sql import name

# In this order, as far as the warehouse has them.
_WANTED = (
    *("other_cpu_share", "cpu_pressure_share", "memory_pressure_share", "steal_share", "run_queue_mean"),
    *("load_average_before", "load_average_after", "core_frequency_mean_mhz", "core_throttle_count"),
    *("core_speed_share", "core_speed_lowest_share", "core_work_ms", "throttled_share", "host_pressure"),
    *("other_processes", "other_gpu_processes", "not_measured"),
)
_KNOWN = {column.name for column in COLUMNS["measurements"]}
_QUESTION = (
    f'SELECT scenario, "repeat", verdict, {name(one for one in _WANTED if one in _KNOWN)}\n'
    "FROM measurements WHERE night = {{ night }} AND outcome = 'measured' AND is_control IS NOT TRUE\n"
    'ORDER BY "order"'
)
_NUMBERS = {
    "other_cpu_share": ("other processes", "stage"),
    "cpu_pressure_share": ("waited for a core", "bar"),
    "slower_share": ("slower cores", "idle"),
}
DRAWN = 12  # runs
_LEAD = Markup(
    "<p>Of the measured time: the share of the cores that other processes took, and the share in which a process "
    "waited for a core. Slower cores: by how much less they did in the same CPU time than in the night's fastest run."
    "</p>"
)


def host_html(data: Path, night: str) -> Markup:
    """The picture and, of runs with busy neighbours, their names; where nothing was measured, why."""
    answer = asked(data, night, _QUESTION)
    measures = [one for row in answer.rows[:DRAWN] for one in _measures(row)]
    if not measures:
        return Markup("<p>Not measured: {}.</p>").format(_why(answer))
    said = "; ".join(f"{one.label} {one.said}" for one in measures)
    title = "Other load and slower cores on the host while measuring (%)"
    rest = _processes(answer) + _unknown(answer)
    return _LEAD + picture_html(answer, "host", title, said, bars(measures)) + rest


def _measures(row: Row) -> list[Measure]:
    run = f"{row['scenario']} #{row['repeat']}"
    speed = row["core_speed_share"]
    known = row | {"slower_share": None if speed is None else 1 - speed}
    return [
        Measure(run, 100 * known[column], f"{known[column]:.1%} {words}", kind)
        for column, (words, kind) in _NUMBERS.items()
        if known[column] is not None
    ]


def _processes(answer: Answer) -> Markup:
    names = ("scenario", "repeat", "verdict", "other_processes")
    rows = [{one: row[one] for one in names} for row in answer.rows if row["other_processes"]]
    return details("Processes that took CPU time", table_html(rows))


def _unknown(answer: Answer) -> Markup:
    said = sorted({row["not_measured"] for row in answer.rows if row["not_measured"]})
    return Markup("<p>Not measured: {}.</p>").format("; ".join(said)) if said else NOTHING


def _why(answer: Answer) -> str:
    said = {row["not_measured"] for row in answer.rows if row["not_measured"]}
    return "; ".join(sorted(said)) or "no run of this night recorded what other processes took"
