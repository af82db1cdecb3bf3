"""Renew the pictures of the Prefect UI in docs/images: `python -m tests.flows.prefect_pictures`; needs Chromium.

They show one night of suites/local.toml, which the service of the how-to runs, in a browser with its login. A server of
known times stands in for the engine. `test_prefect_pictures.py` reads the same pages for what they must say.
"""

import base64
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterFlowRunId
from prefect.client.schemas.objects import Artifact
from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL, temporary_settings

from tests.browser import Page, browser_page
from tests.flows.as_documented import AsDocumented, service
from tests.flows.conftest import TRUTH_SERVER
from tests.flows.deployed import begin, state_of
from tests.warehouse.site.screenshots import IMAGES, chromium

WIDTH, MENU = 1280, 256  # pixels of the window, and of Prefect's menu at its left, which the pictures leave out
NAMES = {"run": "run-in-prefect"}  # of a picture's file, where it is not `prefect-` and the name of its page
SUITE = "suites/local.toml"
NIGHT_S = 900.0  # a night of a suite of this computer is over by then
TABLES = {
    "plan": ("order", "scenario", "repeat", "load", "requests"),
    "results": ("scenario", "repeat", "verdict", "tok_per_s", "mean_95", "ttft_p50_ms", "tpot_p50_ms"),
    "costs": ("stage", "scenario", "times", "minutes", "usd"),
}


@dataclass(frozen=True)
class Shown:
    """A page as a person sees it: its text, and its picture."""

    text: str
    picture: bytes


@dataclass(frozen=True)
class Ui:
    """The UI of a service in a browser that is logged in, and the API that knows what it is about."""

    computer: AsDocumented
    api: SyncPrefectClient
    page: Page

    def show(self, path: str, *texts: str, height: int = 720) -> Shown:
        """Open a page and wait for these texts."""
        address = f"{self.computer.api_url.removesuffix('/api')}{path}"
        text = self.page.open(address, texts, (WIDTH, height))
        return Shown(text, self.page.picture(WIDTH, height, MENU))

    def artifact(self, run: UUID, key: str, *texts: str, height: int = 720) -> Shown:
        """The page of an artifact of a run."""
        return self.show(f"/artifacts/artifact/{self.artifacts(run)[key].id}", key, *texts, height=height)

    def artifacts(self, run: UUID) -> dict[str, Artifact]:
        """The artifacts of a run by their keys."""
        of_run = ArtifactFilter(flow_run_id=ArtifactFilterFlowRunId(any_=[run]))
        return {str(one.key): one for one in self.api.read_artifacts(artifact_filter=of_run)}


@contextmanager
def ui(home: Path, shared: Path | None = None) -> Iterator[Ui]:
    """The service of the how-to, whose engine is a server of known times, and its UI; suites in `home` may be run."""
    engine = home / "vllm"
    times = "TRUTH_TTFT_MS=60 TRUTH_ITL_MS=25"
    engine.write_text(f'#!/bin/sh\n{times} exec "{sys.executable}" -u "{TRUTH_SERVER}" "$@"\n')
    engine.chmod(0o755)
    settings = {
        "NIGHTBENCH_VLLM_EXECUTABLE": str(engine),
        "NIGHTBENCH_DEPLOYED_SUITES": str(home),
        "NIGHTBENCH_MACHINE_LOCK": str(home / "machine.lock"),
    }
    with service(home, shared, settings) as computer, TemporaryDirectory() as profile:
        known = {PREFECT_API_URL: computer.api_url, PREFECT_API_AUTH_STRING: computer.login}
        login = base64.b64encode(computer.login.encode()).decode()
        remembered = f"localStorage.setItem('prefect-password', '{login}')"  # as the page of the login leaves it
        with (
            temporary_settings(known),
            get_client(sync_client=True) as api,
            browser_page(Path(profile), remembered) as page,
        ):
            yield Ui(computer, api, page)


def pages_of_a_night(shown: Ui, suite: str) -> dict[str, Shown]:
    """Run a night of a suite and show the pages on which a person follows it: before, meanwhile and after."""
    deployment = shown.api.read_deployment_by_name("nightly/nightly").id
    pages = {"form": shown.show(f"/deployments/deployment/{deployment}/run", "apply_rules", height=1420)}
    run = begin("nightly/nightly", suite=suite, target="local").id

    def measures() -> bool:
        bar = shown.artifacts(run).get("progress")
        return bar is not None and re.search(r"; measure .* left$", str(bar.description)) is not None

    shown.computer.wait_until(measures, "a run is measured")
    pages["progress"] = shown.artifact(run, "progress", "Progress: ", height=420)
    shown.computer.wait_until(lambda: state_of(shown.api, run).is_final(), "the night is over", NIGHT_S)
    pages["run"] = shown.show(f"/runs/flow-run/{run}", "Completed", "night: ", height=720)
    for key, headings in TABLES.items():
        pages[key] = shown.artifact(run, key, *headings, height=720)
    pages["summary"] = shown.artifact(run, "summary", "The page of night", height=420)
    return pages


def main() -> None:
    """Run the night and write its pictures."""
    if chromium() is None:
        sys.exit("no Chromium: install Debian's package chromium")
    with TemporaryDirectory() as folder, ui(Path(folder)) as shown:
        for name, page in pages_of_a_night(shown, SUITE).items():
            (IMAGES / f"{NAMES.get(name, f'prefect-{name}')}.png").write_bytes(page.picture)


if __name__ == "__main__":
    main()
