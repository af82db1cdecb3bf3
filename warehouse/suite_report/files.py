"""Write the tables of a suite beside the page of its night, in every format."""

from pathlib import Path

from bench.suite.suite import Suite
from nights.durable import write_text
from warehouse.lake.lake import writing
from warehouse.suite_report.build import build_report
from warehouse.suite_report.formats import FORMATS


def write_suite_report(data: Path, suite: Suite, night: str) -> Path | None:
    """Write reports/NIGHT/SUITE.html, .md, .json and .csv; returns the HTML page, or None of a suite without [report].

    Raises UsageError where the night is of another suite, LoadIntoWarehouseError if a file cannot be written.
    """
    if "report" not in suite.model_fields_set:
        return None
    report = build_report(data, suite, night)
    folder = data.absolute() / "reports" / night
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for form, write in FORMATS.items():
            write_text(folder / f"{suite.name}.{form}", write(report))
    return folder / f"{suite.name}.html"
