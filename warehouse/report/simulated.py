"""The note on each page of a data folder of `nightbench demo`: its nights are simulated, or in another order."""

from pathlib import Path

from markupsafe import Markup

from warehouse.report.markup import NOTHING

MARK = "SIMULATED.txt"  # in the data folder
HISTORY_MARK = "HISTORY.txt"
_NOTES = {
    MARK: Markup(
        "<p class='simulated' role='note'><strong>Simulated nights.</strong> "
        "No engine ran: every number here was made by <code>nightbench demo</code>.</p>"
    ),
    HISTORY_MARK: Markup(
        "<p class='simulated' role='note'><strong>Real nights, in the order of releases.</strong> "
        "Each was measured, in an order drawn at random, and stands here on a day of its own, engine by engine from "
        "the oldest release to the newest. <code>nights.csv</code> in the data folder has the times of measuring.</p>"
    ),
}


def demo_note(data: Path) -> Markup:
    """The note; nothing where the nights of the data folder are its own."""
    return next((note for mark, note in _NOTES.items() if (data / mark).is_file()), NOTHING)


def why_no_nights(data: Path) -> str | None:
    """Why a data folder of `nightbench demo` has no night to load or to write a page of; None of any other folder."""
    if not demo_note(data):
        return None
    what = "simulated nights" if (data / MARK).is_file() else "nights"
    return (
        f"{data} has the {what} of `nightbench demo`, without run folders: their pages are in "
        f"{data / 'site' / 'index.html'}, and `nightbench demo` writes them again in an empty folder"
    )
