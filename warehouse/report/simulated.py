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


def why_no_nights(data: Path) -> str | None:
    """Why a data folder of simulated nights has no night to load or to write a page of; None of any other folder."""
    if not (data / MARK).is_file():
        return None
    return (
        f"{data} has the simulated nights of `nightbench demo`, without run folders: their pages are in "
        f"{data / 'site' / 'index.html'}, and `nightbench demo` writes them again in an empty folder"
    )
