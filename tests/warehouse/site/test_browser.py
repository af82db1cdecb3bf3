"""The pages in a real browser: axe finds nothing serious, the console says nothing, and no other host is asked."""

import html
import json
import re
import subprocess
from base64 import b64decode
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from tests.pairs import IS_SOAK
from tests.warehouse.conftest import NIGHT
from tests.warehouse.site.conftest import Grown
from tests.warehouse.site.screenshots import PATIENCE_S, chromium
from warehouse.report.page import write_report

CHROMIUM = chromium()
LARGEST = 2_000_000  # bytes of a page
SCREEN = 800  # pixels of a laptop's window
SERIOUS = {"serious", "critical"}
# Looks at the page once its charts are drawn, with everything open, in light, in dark, at 400 px and as on paper; what
# it found is written into the page.
JUDGE = """<script>
const height = () => Math.ceil(document.querySelector("main").getBoundingClientRect().bottom);
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const told = async (options) => (await axe.run(document, options)).violations.map(
  (one) => [one.impact, one.id, one.nodes.map((node) => node.html.slice(0, 200))]);
const all = (query) => [...document.querySelectorAll(query)];
window.addEventListener("load", async () => {
  const found = { height: height(), saved: [] };
  all("details").forEach((one) => { one.open = true; });
  all("figure").forEach((one) => one.scrollIntoView());
  await wait(500);
  found.told = await told({});
  document.documentElement.style.colorScheme = "dark";
  found.told.push(...await told({ runOnly: ["color-contrast"] }));
  found.headings = all("h1, h2, h3").map((one) => Number(one.tagName[1]));
  found.charts = all("figure").map((one) => ({
    csv: one.querySelector("a[download]") !== null, svg: one.querySelector(".chart svg") !== null,
    sql: one.innerText.includes("SELECT"), said: one.querySelector("[role=img]").getAttribute("aria-label"),
  }));
  found.outlines = all("a, button, summary, [tabindex]").map((one) => {
    one.focus({ focusVisible: true });
    return document.activeElement === one ? getComputedStyle(one).outlineStyle : "not focused";
  });
  HTMLAnchorElement.prototype.click = function () { found.saved.push([this.download, this.href]); };
  all("figure button").slice(0, 2).forEach((one) => one.click());
  document.body.style.width = "368px";
  await wait(300);
  found.narrow = document.body.scrollWidth;
  all("details").forEach((one) => { one.open = false; });
  dispatchEvent(new Event("beforeprint"));
  for (const sheet of document.styleSheets) for (const rule of sheet.cssRules) {
    if (rule.media?.mediaText === "print") rule.media.mediaText = "all";
  }
  found.on_paper = {
    hidden: all("nav, button, a[download]").every((one) => one.offsetHeight === 0),
    sentences: all("figure .more > p").every((one) => one.offsetHeight > 0),
    is_open: all("details.part").every((one) => one.open),
  };
  found.asked = performance.getEntriesByType("resource").map((one) => one.name)
    .filter((name) => !name.startsWith("file:") && !name.startsWith("data:"));
  const text = document.createElement("pre");
  text.id = "found";
  text.textContent = JSON.stringify(found);
  document.body.append(text);
});
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
            [str(CHROMIUM), *flags, *waits, beside.as_uri()],
            check=True,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
    finally:
        beside.unlink()
    written = re.search(r'<pre id="found">(.*?)</pre>', done.stdout, re.DOTALL)
    assert written is not None, done.stderr[-2000:]
    return json.loads(html.unescape(written[1])), [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def hold(page: Path) -> dict[str, Any]:
    """Hold a page to what each page must be, and return what else was found."""
    found, console = judged(page)
    levels = found["headings"]
    assert found["told"] == []
    assert (found["asked"], console) == ([], [])
    assert levels[0] == 1
    assert all(below <= above + 1 for above, below in pairwise(levels))
    assert set(found["outlines"]) <= {"solid", "auto"}
    assert found["narrow"] <= 400
    assert page.stat().st_size <= LARGEST
    assert found["on_paper"] == {"hidden": True, "sentences": True, "is_open": True}
    assert all(one["csv"] and one["svg"] and one["sql"] for one in found["charts"])
    assert all(re.search(r": .*[0-9]", one["said"]) for one in found["charts"])
    return found


PAGES = ["index.html", f"night/{NIGHT}.html"]
MORE = ["trust.html", "series/index.html", "compare.html", "cost.html", "night/index.html"] if IS_SOAK else []


@pytest.mark.parametrize("page", [*PAGES, *MORE])
def test_a_page_of_the_site_has_nothing_serious(own: Path, page: str) -> None:
    hold(own / page)


def test_the_page_of_a_series_has_nothing_serious(site: Path) -> None:
    hold(next(page for page in (site / "series").glob("*.html") if "gaps" in page.name))


METRICS = ["output_throughput_tok_per_s", "ttft_p50_ms", "tpot_p50_ms"]


def test_a_quiet_night_fits_one_screen_and_its_charts_can_be_saved(grown: Grown) -> None:
    report = hold(write_report(grown.data, grown.newest))
    (svg_name, svg), (png_name, png) = report["saved"]
    picture = unquote(svg).partition(",")[2]

    assert report["height"] <= SCREEN
    trends = [one["said"].split(": ") for one in report["charts"] if "/vllm: " in one["said"]]
    assert [metric for _, metric, *_ in trends[::2]] == METRICS
    assert (svg_name, png_name) == (f"{grown.newest}-load-ttft_p50_ms.svg", f"{grown.newest}-load-ttft_p50_ms.png")
    assert "var(" not in picture
    assert re.match(r'<svg [^>]*xmlns="http://www.w3.org/2000/svg".*</svg>\Z', picture, re.DOTALL)
    assert b64decode(png.partition(",")[2]).startswith(b"\x89PNG")


def test_a_start_page_with_nothing_to_say_fits_one_screen(grown: Grown) -> None:
    assert hold(grown.site / "index.html")["height"] <= SCREEN


def test_a_picture_without_words_from_elsewhere_would_be_found(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(
        "<html lang='en'><title>x</title><body><main><img src='http://example.com/x.png'></main>"
        "<script>lost()</script></body></html>"
    )

    found, console = judged(page)

    assert "image-alt" in {one[1] for one in found["told"] if one[0] in SERIOUS}
    assert found["asked"] == ["http://example.com/x.png"]
    assert ["lost is not defined" in line for line in console] == [True]
