"""Open a page in the reader's browser."""

import os
import sys
import webbrowser
from pathlib import Path


def open_page(page: Path) -> bool:
    """Open a page where there is a terminal, whose reader waits for it, and a display; tell whether it was opened."""
    # Without a display Python takes a browser of the terminal, which would hide what is printed.
    has_display = any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    return sys.stdout.isatty() and has_display and webbrowser.open(page.as_uri())
