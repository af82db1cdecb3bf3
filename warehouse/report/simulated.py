"""The note on each page of a data folder whose nights are simulated."""

from pathlib import Path

from markupsafe import Markup

from warehouse.report.markup import NOTHING

MARK = "SIMULATED.txt"  # in the data folder
_NOTE = Markup(
    "<p class='simulated' role='note'><strong>Simulated nights.</strong> "
    "No engine ran: every number here was made by <code>nightbench demo</code>.</p>"
)


def simulated_note(data: Path) -> Markup:
    """The note; nothing where the nights of the data folder are real."""
    return _NOTE if (data / MARK).is_file() else NOTHING
