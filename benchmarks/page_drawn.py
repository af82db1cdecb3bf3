"""How long a page of the site takes to be drawn in headless Chromium."""

import time
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.browser import PATIENCE_S, POLL_S, browser_page

WINDOW = (1280, 900)
TIMES = 3
# Runs before the page's own scripts: notes the time since its navigation at which all charts in view are there.
_NOTE = """
addEventListener("DOMContentLoaded", () => {
  const inView = (one) => !one.closest("details:not([open])") && one.getBoundingClientRect().top < innerHeight;
  const isDrawn = (one) => one.querySelector(".chart svg, .chart canvas");
  const look = () => {
    const charts = [...document.querySelectorAll("figure[data-chart]")].filter(inView);
    if (document.readyState === "complete" && charts.every(isDrawn)) window.drawnAfterMs = performance.now();
    else requestAnimationFrame(look);
  };
  look();
});
"""


def drawn_s(page: Path) -> float:
    """Seconds from the navigation to a page of this computer until it is loaded and drawn; the shortest of three.

    Raises TimeoutError if it is not drawn.
    """
    with TemporaryDirectory(prefix="nightbench-browser-") as profile, browser_page(Path(profile), _NOTE) as browser:
        width, height = WINDOW
        browser.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )
        seen = []
        for _ in range(TIMES):
            browser.call("Page.navigate", url="about:blank")
            browser.call("Page.navigate", url=page.absolute().as_uri())
            until = time.monotonic() + PATIENCE_S
            while not (drawn := browser.run("window.drawnAfterMs")):
                if time.monotonic() > until:
                    raise TimeoutError(f"{page} is not drawn within {PATIENCE_S} s")
                time.sleep(POLL_S)
            seen.append(float(str(drawn)) / 1000)
    return min(seen)
