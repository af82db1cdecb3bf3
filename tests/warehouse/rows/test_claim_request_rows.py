"""Requests of imported claims as rows: what each format's file says of them, and NULL for what it does not."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bench.audit.claim import Claim, ClaimSource, RequestSeries
from tests.data.formats.closed_loop import closed_loop
from tests.warehouse.importers.reading import FORMATS, claims_at, claims_of
from warehouse.rows.claim_request_rows import PIECE, request_tables
from warehouse.schema.columns import arrow_schema

RUST = Path(__file__).parents[2] / "data" / "vllm-rs-bench" / "serve.json"


def table_of(claim: Claim) -> pa.Table:
    return pa.concat_tables([arrow_schema("claim_requests").empty_table(), *request_tables("import-a/0", claim)])


def rows_of(claim: Claim) -> list[dict[str, Any]]:
    return list(table_of(claim).to_pylist())


def claim_with(**arrays: Any) -> Claim:
    return Claim(ClaimSource("a.json", "", "", "vllm-serve", 2), series=RequestSeries(**arrays))


def test_a_request_is_a_row_in_milliseconds_with_its_gaps() -> None:
    claim = claim_with(
        input_tokens=np.array([7]),
        output_tokens=np.array([3]),
        start_s=np.array([12.5]),
        ttft_s=np.array([0.25]),
        e2el_s=np.array([1.25]),
        gap_s=np.array([0.5, 0.5]),
        gap_at=np.array([0, 2]),
    )

    assert rows_of(claim) == [
        {
            "claim_id": "import-a/0",
            "importer_version": 2,
            "request_index": 0,
            "is_ok": None,
            "error": None,
            "start_s": 12.5,
            "ttft_ms": 250.0,
            "tpot_ms": 500.0,
            "e2el_ms": 1250.0,
            "input_tokens": 7,
            "output_tokens": 3,
            "itl_ms": [500.0, 500.0],
        }
    ]


def test_a_tpot_that_the_client_timed_is_kept() -> None:
    claim = claim_with(
        output_tokens=np.array([3, 1]),
        ttft_s=np.array([0.25, 0.25]),
        e2el_s=np.array([1.25, 0.25]),
        tpot_s=np.array([0.4, np.nan]),
    )

    assert [row["tpot_ms"] for row in rows_of(claim)] == [400.0, None]


def test_what_a_failed_request_did_not_do_is_null_and_never_zero() -> None:
    (claim,) = claims_at(RUST)

    failed = [row for row in rows_of(claim) if not row["is_ok"]]

    assert [row["request_index"] for row in failed] == [3, 7]
    assert {row[name] for row in failed for name in ("ttft_ms", "tpot_ms", "e2el_ms", "output_tokens")} == {None}
    assert failed[0]["itl_ms"] is None
    assert failed[0]["error"].startswith("HTTP 500")


def test_without_a_latency_the_first_token_and_the_gaps_are_the_latency() -> None:
    claim = claim_with(
        ttft_s=np.array([0.1, 0.2, 0.3]), gap_s=np.array([0.05, 0.06, 0.07]), gap_at=np.array([0, 2, 2, 3])
    )

    assert [row["e2el_ms"] for row in rows_of(claim)] == pytest.approx([210.0, 200.0, 370.0])


def test_an_answer_of_one_token_has_no_time_per_token_after_it() -> None:
    claim = claim_with(ttft_s=np.array([0.1]), e2el_s=np.array([0.1]), output_tokens=np.array([1]))

    assert rows_of(claim)[0]["tpot_ms"] is None


def test_arrays_that_disagree_in_length_are_no_rows() -> None:
    assert rows_of(claim_with(ttft_s=np.array([0.1, 0.2]), output_tokens=np.array([1]))) == []


def test_a_claim_without_requests_is_no_rows() -> None:
    assert rows_of(Claim(ClaimSource("a.json", "", "", "llmd", 1))) == []


def test_rows_of_many_requests_come_in_pieces_and_are_the_same() -> None:
    count = 2 * PIECE + 3
    ttft, gaps = np.arange(count) / 8, np.arange(2 * count) % 64 / 64
    claim = claim_with(ttft_s=ttft, gap_s=gaps, gap_at=2 * np.arange(count + 1))

    pieces = list(request_tables("import-a/0", claim))

    whole = pa.concat_tables(pieces)
    assert [len(piece) for piece in pieces] == [PIECE, PIECE, 3]
    assert np.array_equal(whole["request_index"].to_numpy(), np.arange(count))
    assert np.array_equal(whole["ttft_ms"].to_numpy(), ttft * 1e3)
    assert whole["itl_ms"][count - 1].as_py() == (gaps[-2:] * 1e3).tolist()


@pytest.mark.parametrize(
    ("twin", "seed", "osl", "slots"),
    [("guidellm/report-v2.json", 4, 128, 8), ("aiperf/alone.jsonl", 7, 4, 1)],
)
def test_the_rows_are_the_requests_of_the_run(twin: str, seed: int, osl: int, slots: int) -> None:
    run = closed_loop(seed=seed, osl=osl, slots=slots)

    (claim,) = claims_at(FORMATS / twin)

    table = table_of(claim)
    assert table["start_s"].to_numpy() == pytest.approx(run.start_s)
    assert table["ttft_ms"].to_numpy() == pytest.approx(run.ttft_s * 1e3)
    assert table["tpot_ms"].to_numpy() == pytest.approx(run.tpot_s * 1e3, rel=1e-4)
    assert table["e2el_ms"].to_numpy() == pytest.approx(run.e2el_s * 1e3, rel=1e-5)
    assert table["output_tokens"].to_pylist() == run.output_tokens.tolist()


def test_why_a_request_of_guidellm_failed_stands_in_its_row() -> None:
    report = json.loads((FORMATS / "guidellm/report-v2.json").read_text())
    totals = report["benchmarks"][0]["metrics"]["request_totals"]
    requests = report["benchmarks"][0]["requests"]
    totals["errored"] = 2
    requests["errored"] = [{"info": {"error": "timed out"}, "prompt_tokens": 512}, {"error": "HTTP 500"}]

    (claim,) = claims_of("a.json", json.dumps(report))

    rows = rows_of(claim)[-2:]
    assert [(row["is_ok"], row["error"], row["input_tokens"]) for row in rows] == [
        (False, "timed out", 512),
        (False, "HTTP 500", None),
    ]


def test_why_a_request_of_aiperf_failed_stands_in_its_row() -> None:
    lines = (FORMATS / "aiperf/alone.jsonl").read_text().splitlines()[1:3]
    broken = json.loads(lines[0]) | {"error": {"code": 503, "type": "ServerError", "message": "busy"}, "metrics": {}}

    (claim,) = claims_of("r.jsonl", "\n".join([json.dumps(broken), lines[1]]))

    assert [row["error"] for row in rows_of(claim)] == ["503 ServerError busy", None]


def test_a_text_that_no_file_can_hold_is_stored_without_what_is_wrong_with_it() -> None:
    result = json.loads(RUST.read_text())
    result["errors"][3] = "half a \ud83d character"

    (claim,) = claims_of("a.json", json.dumps(result))

    assert rows_of(claim)[3]["error"] == "half a ? character"
