"""A script in a name, a reason or an imported cell never runs: pages escape it, and the policy stops what they miss."""

import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from flows.service.pages import serve
from tests.warehouse.conftest import NIGHT
from tests.warehouse.folders import Shape, Told, write_night, write_run
from tests.warehouse.site.screenshots import FLAGS, PATIENCE_S, chromium
from tests.warehouse.test_histories import PLAIN
from warehouse.histories import import_history
from warehouse.load import load_night
from warehouse.site.write import write_site

CHROMIUM = chromium()
RUN = "document.documentElement.dataset.ran=1"
HOSTILE = f"</script></title><script>{RUN}</script><img src=x onerror={RUN}>'\"--><svg onload={RUN}>"
CELL = HOSTILE.replace('"', '""')
HISTORY = f"""source_repo,timestamp,series,metric,unit,value,engine_version,note
"{CELL}",2026-02-01T01:00:00Z,"{CELL}","{CELL}","{CELL}",50,"{CELL}","{CELL}"
"""

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: install Debian's package chromium")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory, site: Path) -> Path:
    """A data folder with its site: a night and a history whose every text is a script."""
    data = tmp_path_factory.mktemp("hostile")
    night = write_night(data, NIGHT, {HOSTILE: Shape(), f"b{HOSTILE}": Shape(tokens=9)})
    first, second = night.runs
    write_run(data, night, first, Shape())
    write_run(data, night, second, Shape(tokens=9), Told("failed", "server", HOSTILE, "oom_kv_len", (HOSTILE,)))
    load_night(data, NIGHT)
    (data / "history.csv").write_text(HISTORY)
    import_history(data, data / "history.csv", PLAIN)
    shutil.copytree(site / "assets", data / "site" / "assets")
    write_site(data, data / "site")
    (data / "site" / "raw.html").write_text(f"<!doctype html><title>x</title>{HOSTILE}")
    return data


@pytest.fixture(scope="module")
def address(hostile: Path) -> Iterator[str]:
    server = serve(hostile, "127.0.0.1", 0)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def has_run(url: str) -> bool:
    """Whether a script of a page's text ran in the browser."""
    argv = [str(CHROMIUM), *FLAGS, "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--dump-dom", url]
    dom = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=PATIENCE_S).stdout
    assert "<body" in dom
    return "data-ran" in dom.partition(">")[0] + dom.partition("<html")[2].partition(">")[0]


@pytest.mark.parametrize("page", ["index.html", f"night/{NIGHT}.html", "series/index.html"])
def test_no_text_of_a_page_runs(hostile: Path, page: str) -> None:
    text = (hostile / "site" / page).read_text()

    assert "&lt;script&gt;" in text
    assert not has_run((hostile / "site" / page).as_uri())


def test_what_a_page_did_not_escape_is_stopped_by_the_policy(hostile: Path, address: str) -> None:
    assert has_run((hostile / "site" / "raw.html").as_uri())
    assert not has_run(f"{address}/raw.html")
