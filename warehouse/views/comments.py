"""DuckDB comments on every view and column: what it is, and its unit."""

from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files

from warehouse.schema.column import Column
from warehouse.schema.columns import TABLES
from warehouse.schema.view_columns import VIEW_COLUMNS, columns_of
from warehouse.sql import sql

ROWS: dict[str, str] = {
    "measurements": "a run, measured or not",
    "requests": "a measured request",
    "telemetry": "a second of a run: the host, or one of its GPUs",
    "server_samples": "a second of a run, from the server's metrics",
    "findings": "the result of one rule for one run",
    "expectations": "an expectation about a table or view of the night",
    "leases": "a rental",
    "attempts": "one attempt to rent a machine",
    "stages": "one stage of a rental",
    "other_costs": "a cost of a night besides its leases",
    "canary": "one test of a machine itself",
    "quality_scores": "a score of lm-eval for a server",
    "search_probes": "one probe of a sweep or search",
    "tuning": "one candidate of a night of a search for flags",
    "command_metrics": "a metric of a run of a command, in its own unit",
    "history_points": "a point of an imported history",
    "history_remarks": "a remark of the importer on a history",
    "series_verdicts": "the verdict on one night of a series",
    "change_points": "a change of a series, as it was reported",
    "acknowledgements": "a note on an event, and its new state",
    "claims": "a measurement of another tool, imported",
    "claim_requests": "a request of a claim",
    "claim_findings": "the result of one rule for one claim",
}

_ON_COLUMN = "COMMENT ON COLUMN {{ view | name }}.{{ column | name }} IS {{ said }}"


def comment_statements(columns: Sequence[tuple[str, str]]) -> Iterator[str]:
    """The SQL that comments on these columns, given as view and name, and on their views."""
    for view in dict.fromkeys(view for view, _name in columns):
        if said := view_comment(view):
            yield sql("COMMENT ON VIEW {{ view | name }} IS {{ said }}", view=view, said=said)
    for view, name in columns:
        if column := columns_of(view).get(name):
            yield sql(_ON_COLUMN, view=view, column=name, said=column_comment(column))


@cache
def comments() -> str:
    """Every comment, as one text: it changes if one of them does."""
    views = [*TABLES, *VIEW_COLUMNS]
    return repr([(view, view_comment(view), [*map(column_comment, columns_of(view).values())]) for view in views])


def view_comment(view: str) -> str | None:
    """What a row of a table is, or the question that a view answers."""
    if view in TABLES:
        return f"one row: {ROWS[view]}" if view in ROWS else None
    file = files("warehouse.views").joinpath(f"{view}.sql")
    return file.read_text(encoding="utf-8").split("\n")[0].removeprefix("-- ") if file.is_file() else None


def column_comment(column: Column) -> str:
    """The meaning of a column, and its unit in brackets."""
    return column.meaning if column.unit is None else f"{column.meaning} [{column.unit}]"
