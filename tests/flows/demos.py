"""A folder that looks like that of a whole demo, for tests of other things: the nights take ten seconds to simulate."""

from pathlib import Path

from warehouse.demo.write import MARK_TEXT
from warehouse.report.simulated import MARK


def plant_demo(folder: Path) -> None:
    """Write the mark of a demo and its start page."""
    (folder / "demo" / "site").mkdir(parents=True)
    (folder / "demo" / MARK).write_text(MARK_TEXT)
    (folder / "demo" / "site" / "index.html").write_text("simulated")
