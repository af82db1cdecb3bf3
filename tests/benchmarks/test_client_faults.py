"""The fault table: what the server's log says is true, and the meter's account of it."""

import json
from pathlib import Path

import pytest

from benchmarks.client_faults import CELL, ROLE_FIRST, read_log, run_fault
from benchmarks.client_run import ClientSetup
from benchmarks.client_table import is_right
from benchmarks.clients import meter, vllm_rs


def entry(name: str, kind: str, tokens: int = 0) -> str:
    return json.dumps({"request_id": name, "kind": kind, "tokens": tokens, "at_ns": 1}) + "\n"


def test_only_an_answer_with_all_its_tokens_and_its_end_is_good() -> None:
    whole = CELL.output_tokens
    log = "".join(
        (
            *(entry("good", "token", whole), entry("good", "usage"), entry("good", "done")),
            *(entry("short", "token", whole // 2), entry("short", "done")),
            *(entry("cut", "token", whole // 2), entry("whole but cut", "token", whole)),
            *(entry("error", "token", whole), entry("error", "broken"), entry("error", "done")),
        )
    )

    assert read_log(log) == (1, whole)


@pytest.mark.parametrize("fault", ["none", "error inside a 200 stream, then [DONE]", "4 tokens an event", ROLE_FIRST])
def test_the_meters_account_of_every_fault_is_the_truth(fault: str, tmp_path: Path) -> None:
    setup = ClientSetup(tmp_path, tmp_path, {"meter": tmp_path}, tmp_path)

    account, truth = run_fault(setup, fault, meter.CLIENT)

    assert account.reason is None
    assert is_right(account, truth)
    assert truth.failed == (3 if fault.startswith("error") else 0)


def test_a_client_that_is_not_there_has_a_reason_and_no_count(tmp_path: Path) -> None:
    setup = ClientSetup(tmp_path, tmp_path, {vllm_rs.CLIENT.name: "no wheel"}, tmp_path)

    (account,) = run_fault(setup, "none", vllm_rs.CLIENT)

    assert (account.ok, account.failed, account.reason) == (None, None, "no wheel")
