"""aiperf's records: a plain one is read in a few lookups, an odd one field by field, and both are the same."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench.errors import UnreadableResultError
from tests.warehouse.importers.mutating import mutated
from tests.warehouse.importers.reading import FORMATS
from warehouse.importers.aiperf.record import odd_record, plain_record
from warehouse.importers.aiperf.records import REMARKS_MAX, Rows, claim_of_records
from warehouse.importers.aiperf.report import RECORDS
from warehouse.importers.parsing.document import BYTES_FAST, Document, read_document
from warehouse.importers.parsing.tree import Tree

LINES = (FORMATS / "aiperf" / "alone.jsonl").read_text().splitlines()
WARMUP, FIRST = (json.loads(line) for line in LINES[:2])


@pytest.mark.parametrize(
    "record",
    [
        WARMUP,
        FIRST,
        FIRST | {"error": {"code": 503, "message": "busy"}, "metrics": {}},
        FIRST | {"metadata": {"was_cancelled": True, "request_start_ns": 5}},
        FIRST | {"metrics": {"output_token_count": {"value": 3.0, "unit": "tokens"}}},
    ],
)
def test_a_plain_record_is_what_it_is_field_by_field(record: dict[str, Any]) -> None:
    looked_at = Tree(record, "here")

    assert plain_record(record) == odd_record(looked_at)
    assert looked_at.all_remarks() == ()


@pytest.mark.parametrize(
    "metrics",
    [
        {"time_to_first_token": {"value": -1.0, "unit": "ms"}},
        {"time_to_first_token": {"value": 1.0, "unit": "fortnights"}},
        {"time_to_first_token": {"value": 1.0}},
        {"request_latency": {"value": "twelve", "unit": "ms"}},
        {"request_latency": {"value": 10**400, "unit": "ms"}},
        {"output_sequence_length": {"value": 3.5, "unit": "tokens"}},
        {"inter_chunk_latency": {"value": [1.0, "x"], "unit": "ms"}},
    ],
)
def test_an_odd_record_is_no_plain_one_and_is_remarked_upon(metrics: dict[str, Any]) -> None:
    rows = Rows()

    rows.add(FIRST | {"metrics": metrics}, "here")

    assert plain_record(FIRST | {"metrics": metrics}) is None
    assert len(rows.remarks) == 1


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_no_mutation_is_read_otherwise_in_a_few_lookups(data: st.DataObject) -> None:
    try:
        record = json.loads(data.draw(mutated(data.draw(st.sampled_from(LINES[:3])))))
    except ValueError:
        return
    found = plain_record(record) if isinstance(record, dict) else None

    if found is not None:
        looked_at = Tree(record, "here")
        # repr tells NaN from NaN no more than people do.
        assert repr(found._replace(gap_s=list(found.gap_s))) == repr(
            (again := odd_record(looked_at))._replace(gap_s=list(again.gap_s))
        )
        assert looked_at.all_remarks() == ()


def long_text() -> str:
    return "\n".join(LINES[1:] * (BYTES_FAST // sum(map(len, LINES[1:])) + 1))


def test_a_long_file_is_read_without_a_second_copy_of_it() -> None:
    text = long_text()
    document = read_document("long.jsonl", text.encode())

    is_known, claim = RECORDS.recognises(document), claim_of_records(document, RECORDS)

    assert is_known
    assert claim.said.completed == text.count("\n") + 1
    assert not document.is_json_list
    assert document.header()
    assert "text" not in vars(document)
    assert "json_lines" not in vars(document)


def test_a_long_file_that_is_cut_off_names_the_line() -> None:
    text = long_text()[:-40]

    with pytest.raises(UnreadableResultError, match=rf"long\.jsonl line {text.count(chr(10)) + 1} column"):
        claim_of_records(read_document("long.jsonl", text.encode()), RECORDS)


def test_of_a_file_whose_every_record_is_odd_the_beginning_is_told_and_how_many_there_are() -> None:
    odd = json.dumps(FIRST | {"metrics": {"time_to_first_token": {"value": 1.0, "unit": "moons"}}})

    claim = claim_of_records(Document("r.jsonl", "\n".join([odd] * 250).encode()), RECORDS)

    assert len(claim.remarks) == REMARKS_MAX + 1
    assert claim.remarks[-1].message == "r.jsonl: 150 more have such problems"
