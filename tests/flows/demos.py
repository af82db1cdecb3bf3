"""A folder that looks like that of a whole demo, for tests of other things: its nights take ten seconds to write."""

from pathlib import Path

from warehouse.demo.history import HISTORY, history_mark
from warehouse.demo.write import MARK_TEXT
from warehouse.report.simulated import HISTORY_MARK, MARK


def plant_demo(folder: Path, *, is_simulated: bool = True) -> None:
    """Write the mark of a demo and its start page."""
    name, text = (MARK, MARK_TEXT) if is_simulated else (HISTORY_MARK, history_mark(HISTORY))
    (folder / "demo" / "site").mkdir(parents=True)
    (folder / "demo" / name).write_text(text)
    (folder / "demo" / "site" / "index.html").write_text("planted")
