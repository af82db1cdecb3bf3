"""The terms that a table shows beside its numbers: as found, else as the scenario requests them."""

from typing import Any

from bench.engines.config import parse_flags
from bench.errors import UsageError
from bench.suite.report import ReportTable
from bench.suite.scenario import Scenario
from bench.suite.workload import Workload
from warehouse.schema.columns import COLUMNS
from warehouse.suite_report.measured import Measured


def require_terms(names: tuple[str, ...]) -> None:
    """Raise UsageError for a name that is neither a column of the measurements, a key of a scenario nor a flag."""
    known = {column.name for column in COLUMNS["measurements"]} | set(Workload.model_fields)
    for name in names:
        if name not in known and not name.startswith("--"):
            raise UsageError(
                f"report: show has {name!r}, which is not a column of measurements, a key of a scenario or a flag; "
                "docs/reference/warehouse.md has the columns"
            )


def terms_of(names: tuple[str, ...], scenario: Scenario, measured: Measured) -> dict[str, Any]:
    """These terms of a scenario; None for one that neither the night nor the scenario has."""
    return {name: _term(name, scenario, measured) for name in names}


def _term(name: str, scenario: Scenario, measured: Measured) -> Any:
    if name.startswith("--"):
        return parse_flags(scenario.engine.flags).get(name)
    found = measured.fact(name) if measured.fact(name) is not None else measured.fact(f"{name}_asked")
    return getattr(scenario.workload, name, None) if found is None else found


def stated_of(table: ReportTable, row: str) -> dict[str, Any]:
    """The columns that the sources of a table state, for one row; None where they state nothing of it."""
    columns = dict.fromkeys(name for stated in table.stated.values() for name in stated)
    return columns | table.stated.get(row, {})
