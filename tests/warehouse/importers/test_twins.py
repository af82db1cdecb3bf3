"""What holds for every synthetic twin: it is its maker's, told by content, quiet, and no change of it is a crash."""

import gzip
import importlib
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench.errors import UnreadableResultError
from tests.warehouse.importers.mutating import mutated
from tests.warehouse.importers.reading import FORMATS, alarms, claims_at, claims_of, document_at
from warehouse.importers import read_claims
from warehouse.importers.parsing.document import read_document

MAKERS = sorted(each.parent.name for each in FORMATS.glob("*/make.py"))
TWINS = sorted(path for name in MAKERS for path in (FORMATS / name).iterdir() if path.suffix not in (".py", ".md", ""))
# A part of the twin beside it, and no result of its own: test_aiperf.py reads it.
PART = FORMATS / "aiperf" / "profile_export.jsonl"
RESULTS = [path for path in TWINS if path != PART]
each_twin = pytest.mark.parametrize("path", RESULTS, ids=lambda path: f"{path.parent.name}/{path.name}")


@pytest.mark.parametrize("name", MAKERS)
def test_a_twin_is_what_its_maker_writes(name: str) -> None:
    made = importlib.import_module(f"tests.data.formats.{name}.make").files()

    assert made == {path.name: path.read_text() for path in TWINS if path.parent.name == name}


@each_twin
def test_nothing_is_wrong_with_a_twin(path: Path) -> None:
    # A number that says itself that it was not measured is told so, and nothing else.
    assert [alarm for alarm in alarms(claims_at(path)) if not alarm.startswith("FAIL not_measured")] == []


@each_twin
def test_a_file_is_told_by_its_content_and_may_be_gzipped(path: Path) -> None:
    here = document_at(path)
    other = read_document("a", gzip.compress(path.read_bytes()), here.sibling, here.siblings)

    assert [claim.lineage.format for claim in read_claims(other)] == [claim.lineage.format for claim in claims_at(path)]


@each_twin
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_no_mutation_of_a_twin_is_a_crash(path: Path, data: st.DataObject) -> None:
    text = data.draw(mutated(path.read_text()))

    with suppress(UnreadableResultError):
        alarms(claims_of(path.name, text))
