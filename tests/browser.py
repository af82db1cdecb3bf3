"""A page in headless Chromium, by its DevTools protocol: for pages that a script fills after they are loaded."""

import base64
import json
import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import httpx2
from websockets.sync.client import connect
from websockets.sync.connection import Connection

from tests.warehouse.site.screenshots import chromium

PATIENCE_S = 120.0
POLL_S = 0.25
SETTLES, SETTLE_S = 5, 3.0  # a canvas is drawn, and zoomed, after the text is there
# SwiftShader draws what a page draws with WebGL, where there is no GPU.
FLAGS = ("--headless", "--no-sandbox", "--hide-scrollbars", "--enable-unsafe-swiftshader", "--remote-debugging-port=0")


@dataclass(frozen=True)
class Page:
    """One page of a browser; what it shows is waited for, so that no test depends on how fast this computer is."""

    _connection: Connection
    _numbers: Iterator[int] = field(default_factory=count)

    def open(self, url: str, shown: Sequence[str], size: tuple[int, int]) -> str:
        """Open an address in a window of this size, wait until all these texts can be read, and return what can be."""
        width, height = size
        window = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **window)
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=url)
        return self.wait_for(shown)

    def wait_for(self, shown: Sequence[str]) -> str:
        """Wait until all these texts can be read, and return what can be."""
        until = time.monotonic() + PATIENCE_S
        while missing := [text for text in shown if text not in self.text()]:
            assert time.monotonic() < until, f"not shown within {PATIENCE_S} s: {missing}, but\n{self.text()}"
            time.sleep(POLL_S)
        return self.text()

    def text(self) -> str:
        """What can be read on the page, with the values of its form."""
        shown = "document.body ? document.body.innerText : ''"
        typed = "[...document.querySelectorAll('input, textarea')].map(one => one.value).join('\\n')"
        return str(self.run(f"{shown} + '\\n' + {typed}"))

    def run(self, script: str) -> object:
        """Run a script in the page and return its value."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def click(self, x: int, y: int) -> None:
        """Click a point of the window: what a canvas draws has no element of its own."""
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def picture(self, width: int, height: int, left: int = 0) -> bytes:
        """The window as a PNG, from `left` on, once it no longer changes; a clock that runs is not waited for long."""
        clip = {"x": left, "y": 0, "width": width - left, "height": height, "scale": 1}
        before = b""
        for _ in range(SETTLES):
            now = base64.b64decode(self.call("Page.captureScreenshot", format="png", clip=clip)["data"])
            if now == before:
                break
            before = now
            time.sleep(SETTLE_S)
        return now

    def call(self, method: str, **parameters: object) -> dict[str, Any]:
        """Call a method of the protocol; the events that come before its answer are left aside."""
        number = next(self._numbers)
        self._connection.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            answer: dict[str, Any] = json.loads(self._connection.recv(timeout=PATIENCE_S))
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return dict(answer["result"])


@contextmanager
def browser_page(folder: Path, before: str = "") -> Iterator[Page]:
    """A page of a browser whose profile is in `folder`, on UTC; `before` is a script that runs first in each page."""
    argv = [str(chromium()), *FLAGS, f"--user-data-dir={folder}", "about:blank"]
    nothing = subprocess.DEVNULL
    env = {**os.environ, "TZ": "UTC"}
    process = subprocess.Popen(argv, stdin=nothing, stdout=nothing, stderr=nothing, env=env)
    try:
        with connect(_address(folder / "DevToolsActivePort"), max_size=None) as connection:
            page = Page(connection)
            page.call("Page.enable")
            page.call("Page.addScriptToEvaluateOnNewDocument", source=before)
            yield page
            page.call("Browser.close")
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE_S)


def _address(file: Path) -> str:
    """Where the browser's first page is steered; the browser writes its port once it listens."""
    until = time.monotonic() + PATIENCE_S
    while not (file.exists() and file.read_text().count("\n")):
        assert time.monotonic() < until, f"no browser within {PATIENCE_S} s"
        time.sleep(POLL_S)
    listed = httpx2.get(f"http://127.0.0.1:{file.read_text().split()[0]}/json/list").json()
    return str(next(one["webSocketDebuggerUrl"] for one in listed if one["type"] == "page"))
