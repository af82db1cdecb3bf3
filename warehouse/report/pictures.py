"""A picture on the page of a night, with its numbers as a table and as CSV, and the query behind it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from warehouse.lake.query import ask
from warehouse.report.figures import Chart, chart_html, csv_of
from warehouse.report.markup import details, sql_html, table_html
from warehouse.schema.row import Row
from warehouse.sql import Sql, sql


@dataclass(frozen=True)
class Answer:
    """What a question about a night is answered with."""

    night: str
    query: Sql
    rows: list[Row]


def asked(data: Path, night: str, question: str) -> Answer:
    """Ask a question in SQL that names the night as `{{ night }}`."""
    query = sql(question, night=night)
    return Answer(night, query, ask(data, query).dicts())


def picture_html(answer: Answer, name: str, title: str, said: str, picture: Markup) -> Markup:
    """The picture; `said` stands in for it where it is not seen."""
    return chart_html(Chart("svg", f"{answer.night}-{name}", title, said, {}), sources_html(answer, name), picture)


def sources_html(answer: Answer, name: str, rows: Sequence[Row] | None = None) -> Markup:
    """The numbers, the CSV and the query."""
    shown = answer.rows if rows is None else rows
    numbers = details("Numbers", table_html(shown))
    return csv_of(f"{answer.night}-{name}", answer.rows) + sql_html(answer.query) + numbers
