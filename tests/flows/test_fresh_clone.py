"""Who has nothing but a clone: `make up`, a night by clicks in the UI, and its page by its link, within twelve minutes.

The home is empty, so that every package is fetched; a server of known times is in the engine's place.
"""

import base64
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.browser import Page, browser_page
from tests.flows.conftest import TRUTH_SERVER
from tests.flows.serving import NOT_OURS, free_port
from tests.warehouse.site.screenshots import chromium

LIMIT_S = 720.0  # where no other program runs; with others, this one gets its share of the cores
PATIENCE_S = 1800.0
LOOK_S = 30.0
ROOT = Path(__file__).parents[2]
WINDOW = (1280, 2000)  # the cards below the window are not drawn

pytestmark = [
    pytest.mark.prefect,
    pytest.mark.matrix,  # an environment of 1.6 GB, a service, a night and a browser
    pytest.mark.timeout(3600),
    pytest.mark.skipif(chromium() is None, reason="no Chromium: install Debian's package chromium"),
]


@contextmanager
def service(folder: Path) -> Iterator[tuple[str, str]]:
    """What `make up` starts in a new clone, with an empty home: the address and the login of its UI."""
    clone, home, engine = folder / "nightbench", folder / "home", folder / "vllm"
    home.mkdir()
    engine.write_text(f'#!/bin/sh\nTRUTH_TTFT_MS=60 TRUTH_ITL_MS=25 exec "{sys.executable}" -u "{TRUTH_SERVER}" "$@"\n')
    engine.chmod(0o755)
    port, inherited = free_port(), (*NOT_OURS, "DBUS_", "UV_", "VIRTUAL_ENV", "XDG_")
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(inherited)},
        "HOME": str(home),
        "PATH": os.pathsep.join(one for one in os.environ["PATH"].split(os.pathsep) if str(ROOT) not in one),
        "XDG_RUNTIME_DIR": str(home),  # no systemd of this user
        "NIGHTBENCH_SERVICE_PORT": str(port),
        "NIGHTBENCH_PAGES_PORT": str(free_port()),
        "NIGHTBENCH_VLLM_EXECUTABLE": str(engine),
        "NIGHTBENCH_MACHINE_LOCK": str(folder / "machine.lock"),
    }
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", ROOT, clone], check=True)
    try:
        done = subprocess.run(["make", "up"], cwd=clone, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        yield f"http://127.0.0.1:{port}", (clone / "data" / "service" / "login").read_text("utf-8").strip()
    finally:
        subprocess.run([clone / ".venv/bin/nightbench", "down", "--stop-night"], cwd=clone, env=environment, check=True)


def press(page: Page, text: str, selector: str = "body *") -> None:
    """Click the innermost element that has this text and no other, once it is there."""
    all_of_kind, is_it = f"[...document.querySelectorAll({json.dumps(selector)})]", f"=== {json.dumps(text)}"
    click(page, f"{all_of_kind}.filter(one => one.innerText?.trim() {is_it}).at(-1)")


def click(page: Page, element: str) -> None:
    """Click the middle of an element, once it is there."""
    where = (
        f"(() => {{ const one = {element}; if (!one) return null; one.scrollIntoView({{block: 'center'}});"
        " const box = one.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; })()"
    )
    until = time.monotonic() + PATIENCE_S
    while not isinstance(point := page.run(where), list):
        assert time.monotonic() < until, f"no {element} on\n{page.text()}"
        time.sleep(1.0)
    page.click(*point)


def switch_on(page: Page, switch: str) -> None:
    """Click a switch until it is on: a page that moves as it is drawn takes the click elsewhere."""
    until = time.monotonic() + PATIENCE_S
    while True:
        click(page, switch)
        if is_soon(lambda: bool(page.run(f"{switch}.ariaChecked === 'true'"))):
            return
        assert time.monotonic() < until, f"{switch} stays off"


def begin_night(page: Page, ui: str) -> str:
    """From the list of deployments to a night of the first scenario, as a person clicks; the address of its run."""
    page.open(f"{ui}/deployments", ["nightly"], WINDOW)
    press(page, "nightly", "a[href^='/deployments/']")
    press(page, "Run", "button")
    press(page, "Custom run")
    page.wait_for(["apply_rules"])
    switches = "[...document.querySelectorAll('[role=switch]')]"
    first = page.run(f"{switches}.findIndex(one => one.ariaChecked === 'false')")
    switch_on(page, f"{switches}[{first}]")  # `poc`, the first of those that are off
    press(page, "Submit", "button")
    click(page, "document.querySelector('a[href^=\"/runs/flow-run/\"]')")
    page.wait_for(["Artifacts"])
    return str(page.run("location.href"))


def address_of_page(page: Page, run: str) -> str:
    """Where the summary of a night links to, once it has one: the run's page is opened again and again."""
    card = "[...document.querySelectorAll('.artifact-card__title')].find(one => one.textContent.trim() === 'summary')"
    until = time.monotonic() + PATIENCE_S
    while not is_soon(lambda: bool(page.run(f"Boolean({card})"))):
        assert time.monotonic() < until, page.text()
        page.open(run, ["Artifacts"], WINDOW)
        press(page, "Artifacts")
    click(page, card)
    page.wait_for(["The page of night"])
    return str(page.run("[...document.links].find(one => one.innerText.startsWith('The page of night')).href"))


def is_soon(is_so: Callable[[], bool]) -> bool:
    """Whether something is so within half a minute: cards of tasks come after the page."""
    until = time.monotonic() + LOOK_S
    while not (found := is_so()) and time.monotonic() < until:
        time.sleep(0.5)
    return found


def test_a_night_is_begun_by_clicks_and_its_page_is_open_within_twelve_minutes(tmp_path: Path) -> None:
    began = time.monotonic()
    with service(tmp_path) as (ui, login):
        remembered = f"localStorage.setItem('prefect-password', '{base64.b64encode(login.encode()).decode()}')"
        with browser_page(tmp_path / "profile", remembered) as page:
            address = address_of_page(page, begin_night(page, ui))
            shown = page.open(address, ["single-stream"], WINDOW)
            took_s, load = time.monotonic() - began, os.getloadavg()[2]

    assert "/reports/2" in address
    assert "four-streams" not in shown, "only the first scenario was asked for"
    assert took_s <= LIMIT_S * max(1.0, load / (os.cpu_count() or 1)), f"{took_s / 60:.1f} min at a load of {load:.1f}"
