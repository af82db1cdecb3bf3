import json
from typing import Any

import numpy as np
import pytest

from bench.loadgen.meter_rows import MeterRows, read_rows

ROW: dict[str, Any] = {
    "index": 0,
    "phase": "measured",
    "outcome": "ok",
    "error": None,
    "intended_at_ns": None,
    "send_start_ns": 10,
    "done_at_ns": 30,
    "prompt_tokens_counted": 8,
    "output_tokens_counted": None,
    "event_first": 0,
    "event_count": 1,
}


def _read(*rows: dict[str, Any]) -> MeterRows:
    return read_rows("".join(json.dumps({**ROW, **row}) + "\n" for row in rows).encode())


def test_a_null_is_no_number_and_no_count() -> None:
    rows = _read({"send_start_ns": 2_500_000_000}, {"send_start_ns": None})

    assert rows.seconds("send_start_ns")[0] == 2.5
    assert np.isnan(rows.seconds("send_start_ns")[1])
    assert rows.counts("output_tokens_counted").tolist() == [-1, -1]


def test_an_error_that_looks_like_a_moment_stays_text() -> None:
    assert _read({"error": "2026-03-01 01:02:03"}, {}).texts("error") == ("2026-03-01 01:02:03", None)


def test_a_field_may_be_null_in_the_first_million_bytes() -> None:
    rows = _read(*[{"body": "x" * 1000}] * 2000, {"error": "late", "cached_tokens": 3})

    assert (rows.texts("error")[-1], rows.counts("cached_tokens")[-1]) == ("late", 3)


def test_rows_that_differ_in_the_type_of_an_unread_field_are_read() -> None:
    rows = _read({"retry_after_s": 1, "index": 4}, {"retry_after_s": "soon", "index": 5})

    assert rows.counts("index").tolist() == [4, 5]


def test_times_that_no_server_told_are_none() -> None:
    assert all(np.isnan(times).all() for times in _read({}, {"server_metrics": None}).server_times_ms())


def test_a_report_without_a_request_has_no_rows() -> None:
    rows = read_rows(b"")

    assert len(rows) == 0
    assert rows.is_equal("phase", "measured").tolist() == []


def test_half_a_field_name_is_no_field() -> None:
    with pytest.raises(KeyError, match="send_start_ns"):
        read_rows(json.dumps({name: 1 for name in ROW if name != "send_start_ns"}).encode())
