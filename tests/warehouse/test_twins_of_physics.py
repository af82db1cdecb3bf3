"""Each code of physics, provenance, money, telemetry and coherence speaks on its own file, and on no good one."""

from pathlib import Path

import pytest

from bench.audit.claim import ClaimedConfig
from tests.bench.judging import judge_claims
from tests.data import twins_of_physics, twins_of_telemetry
from warehouse.context import context_of, in_context
from warehouse.importers import read_claims
from warehouse.importers.parsing.document import read_document
from warehouse.rows.catalog_subject import subject_of

DATA = Path(__file__).parents[1] / "data"
TEXTS = {
    DATA / folder / name: text
    for made in (twins_of_physics.files(), twins_of_telemetry.files())
    for folder, texts in made.items()
    for name, text in texts.items()
}
RESULTS = [path for path in TEXTS if not path.name.endswith(".toml")]


def _spoken(path: Path) -> set[str]:
    context = context_of(path, ClaimedConfig())
    claims = [in_context(each, context) for each in read_claims(read_document(path.name, path.read_bytes()))]
    judged = judge_claims(claims, subject_of)
    return {each.code for one in judged for each in one.findings if each.status in ("FAIL", "WARN")}


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_file_has_its_own_code_and_no_other(path: Path) -> None:
    expected = {path.name.partition(".")[0].partition("-")[0]} if path.parent.name == "audit" else set()

    assert _spoken(path) == expected


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_file_is_what_its_maker_makes(path: Path) -> None:
    assert path.read_text() == TEXTS[path]
