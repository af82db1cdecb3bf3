"""The pages in a real browser: axe finds nothing serious, the console says nothing, and no other host is asked."""

import html
import json
import re
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from tests.pairs import IS_SOAK
from tests.warehouse.conftest import NIGHT

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
SERIOUS = {"serious", "critical"}
# axe looks at the page once its charts are drawn, and writes what it found into it.
JUDGE = """<script>
window.addEventListener("load", () => setTimeout(() => axe.run().then((found) => {
  const told = found.violations.map((one) => [one.impact, one.id, one.nodes.map((node) => node.html)]);
  const text = document.createElement("pre");
  text.id = "found";
  const asked = performance.getEntriesByType("resource").map((one) => one.name);
  text.textContent = JSON.stringify({told, asked: asked.filter((name) => !name.startsWith("file:"))});
  document.body.append(text);
}), 500));
</script>"""

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: install Debian's package chromium")


def judged(page: Path) -> tuple[dict[str, Any], list[str]]:
    """What axe finds on a page, and what the browser's console says; hosts elsewhere cannot be reached."""
    axe = files("axe_core_python").joinpath("axe.min.js").read_text("utf-8")
    beside = page.with_name(f"judged-{page.name}")
    beside.write_text(page.read_text("utf-8").replace("</body>", f"<script>{axe}</script>{JUDGE}</body>"), "utf-8")
    flags = ("--headless", "--no-sandbox", "--disable-gpu", "--window-size=1280,1080", "--enable-logging=stderr")
    waits = ("--virtual-time-budget=20000", "--host-resolver-rules=MAP * ~NOTFOUND", "--dump-dom")
    try:
        done = subprocess.run(
            [str(CHROMIUM), *flags, *waits, beside.as_uri()], check=True, capture_output=True, text=True, timeout=120
        )
    finally:
        beside.unlink()
    written = re.search(r'<pre id="found">(.*?)</pre>', done.stdout, re.DOTALL)
    assert written is not None, done.stderr[-2000:]
    return json.loads(html.unescape(written[1])), [line for line in done.stderr.splitlines() if "CONSOLE" in line]


PAGES = ["index.html", f"night/{NIGHT}.html"]
MORE = ["trust.html", "series/index.html", "compare.html", "cost.html", "night/index.html"] if IS_SOAK else []


@pytest.mark.parametrize("page", [*PAGES, *MORE])
def test_a_page_of_the_site_has_nothing_serious(own: Path, page: str) -> None:
    found, console = judged(own / page)

    assert [one for one in found["told"] if one[0] in SERIOUS] == []
    assert (found["asked"], console) == ([], [])


def test_the_page_of_a_series_has_nothing_serious(site: Path) -> None:
    found, console = judged(next(page for page in (site / "series").glob("*.html") if "gaps" in page.name))

    assert [one for one in found["told"] if one[0] in SERIOUS] == []
    assert (found["asked"], console) == ([], [])


def test_a_picture_without_words_from_elsewhere_would_be_found(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(
        "<html lang='en'><title>x</title><body><img src='http://example.com/x.png'><script>lost()</script></body></html>"
    )

    found, console = judged(page)

    assert "image-alt" in {one[1] for one in found["told"] if one[0] in SERIOUS}
    assert found["asked"] == ["http://example.com/x.png"]
    assert ["lost is not defined" in line for line in console] == [True]
