"""What great-expectations finds of the tables and views of a night: our own expectations, and those of its suite."""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from bench.record import NightRecord
from bench.suite.expectations import Expectation
from warehouse.judging.night_views import KEYS, OF_COLUMNS, frame_of, frame_of_columns, values_of, views_of
from warehouse.judging.validation import built_in, place_of, raised, validated
from warehouse.schema.row import Row

if TYPE_CHECKING:
    import pandas as pd

EVIDENCE = "evidence"  # is validated before the tables are written
OWN, OF_SUITE = "nightbench", "suite"
STARTED = "night__started_at"
EXAMPLES = 3  # of the unexpected values
_PARAMETER = re.compile(r"[a-z]\w*?__\w+")


@dataclass(frozen=True)
class Checked:
    """What was found of an expectation: its row in the lake, and the runs that it does not hold of."""

    row: Row
    run_ids: frozenset[str]

    def __str__(self) -> str:
        """What does not hold, as a sentence."""
        row = self.row
        about = ".".join(filter(None, (row["table_name"], row["column_name"])))
        count, examples = row["unexpected_count"], "; ".join(row["examples"] or ())
        found = (
            f"of {row['row_count']} values {count} are unexpected" if count is not None else f"found {row['observed']}"
        )
        why = row["error"] or (f"{found}: {examples}" if examples else found)
        return f"{about}: {row['expectation']} {row['given']} does not hold: {why}" + (
            f" ({row['notes']})" if row["notes"] else ""
        )


@dataclass(frozen=True)
class TablesChecked:
    """What was found of every expectation, and great-expectations' own results by table."""

    checked: tuple[Checked, ...]
    results: Mapping[str, Any]

    @property
    def rows(self) -> list[Row]:
        """The row of each expectation."""
        return [one.row for one in self.checked]

    @property
    def unmet(self) -> list[Checked]:
        """The expectations that do not hold."""
        return [one for one in self.checked if one.row["status"] != "PASS"]


def check_tables(
    staging: Path, night: str, plan: NightRecord | None = None, tables: Collection[str] | None = None
) -> TablesChecked:
    """Validate the staged tables of a night, and views over them, as its plan says too; `tables`: only these."""
    asked: dict[str, list[tuple[str, Expectation]]] = {}
    suites = [(OWN, table, expectations) for table, expectations in built_in().items() if table != EVIDENCE]
    suites += [(OF_SUITE, one.name, one.expectations) for one in (plan.expectations if plan else ())]
    for origin, table, expectations in suites:
        if tables is None or table in tables:
            asked.setdefault(table, []).extend((origin, one) for one in expectations)
    named = {name.split("__")[0] for found in asked.values() for _origin, one in found for name in parameters_of(one)}
    checked: list[Checked] = []
    results: dict[str, Any] = {}
    with views_of(staging, night, {*asked, *named}) as connection:
        for table, found in asked.items():
            own = [one for _origin, one in found]
            frame = (
                frame_of_columns(connection, staging, night)
                if table == OF_COLUMNS
                else frame_of(connection, table, own)
            )
            parameters = dict(_parameters(connection, own, plan.started_at if plan else None))
            said, whole = _validated(table, frame, own, parameters)
            results |= {} if whole is None else {table: whole}
            of_each = zip(found, said, strict=True)
            checked += [_checked(night, table, frame, origin, one, result) for (origin, one), result in of_each]
    return TablesChecked(tuple(checked), results)


def parameters_of(expectation: Expectation) -> list[str]:
    """The values of the night that an expectation is given by name: `<table>__<column>`, or the night's start."""
    given = [value for value in expectation.kwargs.values() if isinstance(value, dict)]
    return [name for value in given for name in _PARAMETER.findall(str(value.get("$PARAMETER", "")))]


def _parameters(
    connection: duckdb.DuckDBPyConnection, expectations: Sequence[Expectation], started_at: datetime | None
) -> Iterator[tuple[str, Any]]:
    for name in {name for one in expectations for name in parameters_of(one)}:
        table, column = name.split("__", 1)
        if name != STARTED:
            yield name, values_of(connection, table, column)
        elif started_at is not None:
            yield name, started_at


def _validated(
    table: str, frame: "pd.DataFrame", expectations: Sequence[Expectation], parameters: Mapping[str, Any]
) -> tuple[list[Any], Any]:
    """The result of each expectation, None where it was not checked, and that of all.

    Not checked is what compares with an unknown start of the night, and, of a table without rows, its values.
    """
    can = [
        (at, one)
        for at, one in enumerate(expectations)
        if (len(frame) or one.type.startswith("expect_table_")) and set(parameters_of(one)) <= parameters.keys()
    ]
    said: list[Any] = [None] * len(expectations)
    if not can:
        return said, None
    whole = validated(table, frame, [one for _at, one in can], parameters)
    for result in whole.results:
        said[can[place_of(result)][0]] = result
    return said, whole


def _checked(night: str, table: str, frame: "pd.DataFrame", origin: str, one: Expectation, result: Any) -> Checked:
    found = {} if result is None else result.result or {}
    places = [int(place) for place in found.get("unexpected_index_list") or ()]
    rows = frame.loc[places]
    error = None if result is None else raised(result.exception_info or {})
    columns = one.columns
    given = {key: value for key, value in one.kwargs.items() if not key.startswith("column")}
    notes = one.notes if isinstance(one.notes, list) else [one.notes] if one.notes else []
    row = {
        "night": night,
        "origin": origin,
        "table_name": table,
        "column_name": ", ".join(columns) or None,
        "expectation": one.type,
        "given": json.dumps(given),
        "severity": one.severity,
        "status": "PASS" if result is None or result.success else "FAIL" if one.severity == "critical" else "WARN",
        "row_count": len(frame),
        "unexpected_count": found.get("unexpected_count"),
        "observed": _text(found["observed_value"]) if found.get("observed_value") is not None else None,
        "examples": _examples(rows.head(EXAMPLES), columns) or None,
        "notes": " ".join(notes) or None,
        "error": error,
    }
    return Checked(row, frozenset(map(str, rows["run_id"].dropna())) if "run_id" in rows else frozenset())


def _examples(rows: "pd.DataFrame", columns: Sequence[str]) -> list[str]:
    """Rows as text: what identifies each, and the values of these columns."""
    keys = [name for name in ("table", "column", *KEYS) if name in rows]
    names = list(dict.fromkeys((*keys, *(name for name in columns if name in rows))))
    found = rows[names].to_dict("records")
    return [", ".join(f"{name} = {_text(value)}" for name, value in row.items()) for row in found]


def _text(value: Any) -> str:
    return str(value.item() if hasattr(value, "item") else value)
