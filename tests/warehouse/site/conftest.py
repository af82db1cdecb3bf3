import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.warehouse.simulated_lake import night_name, write_lake
from tests.warehouse.test_histories import HISTORIES, PLAIN
from warehouse.histories import import_history, judge_imported
from warehouse.load import LoadSummary
from warehouse.site.write import write_site

ODD = """source_repo,timestamp,series,metric,unit,value
odd,2026-02-01T01:00:00Z,</script><b>name</b>,a<i>metric</i>,tok/s,50
odd,2026-02-01T01:00:00Z,gaps,value,tok/s,50
odd,2026-02-02T01:00:00Z,gaps,value,tok/s,0
odd,2026-02-20T01:00:00Z,gaps,value,tok/s,51
odd,2026-02-01T01:00:00Z,failures only,value,tok/s,0
"""


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of a data folder with imported histories only: known changes, odd names, gaps, and failures only."""
    data = tmp_path_factory.mktemp("histories")
    odd = data / "odd.csv"
    odd.write_text(ODD)
    judge_imported(data, [import_history(data, path, PLAIN).sha256 for path in (HISTORIES / "long.csv", odd)])
    return write_site(data, data / "site").index.parent


@pytest.fixture(scope="session")
def own(loaded: tuple[Path, LoadSummary], site: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of one own night; it takes the scripts of the other site, because they take a second to make."""
    out = tmp_path_factory.mktemp("own") / "site"
    (out / "night").mkdir(parents=True)
    (out / "night" / "2020-01-01.html").write_text("yesterday")
    shutil.copytree(site / "assets", out / "assets")
    return write_site(loaded[0], out).index.parent


@dataclass(frozen=True)
class Grown:
    """A site that was written after two nights and again after the third; nothing happened in any of them."""

    data: Path
    site: Path
    before: dict[str, str]  # the files after two nights
    newest: str


@pytest.fixture(scope="session")
def grown(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Grown:
    """The site of quiet nights, with the scripts of the other site."""
    data = tmp_path_factory.mktemp("grown")
    out = data / "site"
    shutil.copytree(site / "assets", out / "assets")
    for nights in (2, 3):
        write_lake(data, nights, requests=10, is_quiet=True)
        before = {str(path.relative_to(out)): path.read_text() for path in out.rglob("*.html")}
        write_site(data, out)
    return Grown(data, out, before, night_name(2))
