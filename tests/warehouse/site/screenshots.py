"""Renew the pictures of the site in docs/images: `python -m tests.warehouse.site.screenshots`.

They show the start page and the newest night of `nightbench demo` in Chromium, on a screen of 1280 pixels, and
the night on a telephone of 390, too.
"""

import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from warehouse.demo.story import story
from warehouse.demo.write import write_demo

IMAGES = Path(__file__).parents[3] / "docs" / "images"
SIZES: Mapping[str, tuple[int, int]] = {"report.png": (1280, 1200), "report-narrow.png": (390, 1400)}
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=5000")
PATIENCE_S = 480.0  # for a page, on a computer that is busy


def chromium() -> str | None:
    """The browser's program; None where there is none."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def photograph(page: Path, out: Path, size: tuple[int, int]) -> None:
    """Write the picture of a page as a window of this size shows it."""
    window = f"--window-size={size[0]},{size[1]}"
    argv = [str(chromium()), *FLAGS, window, f"--screenshot={out}", page.as_uri()]
    subprocess.run(argv, check=True, capture_output=True, timeout=PATIENCE_S)


def main() -> None:
    """Write the demo aside and photograph its newest night."""
    if chromium() is None:
        sys.exit("no Chromium: install Debian's package chromium")
    with TemporaryDirectory() as folder:
        site = write_demo(Path(folder) / "demo").parent
        page = site / "night" / f"{list(story())[-1].name}.html"
        for name, size in SIZES.items():
            photograph(page, IMAGES / name, size)
        photograph(site / "index.html", IMAGES / "site.png", (1280, 1000))


if __name__ == "__main__":
    main()
