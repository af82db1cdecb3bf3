"""What a page or a log beside a result states is filled in, and a contradiction is named once all rows agree."""

import json

import pytest

from bench.errors import ToldBesideError
from tests.warehouse.importers.reading import FORMATS, alarms, claims_of
from tests.warehouse.importers.statements.texts import ROOT_DATA

LOG = (ROOT_DATA / "vllm-8-gpus/llama-3.1-405b-8xmi300x.log").read_text()
RESULT = (FORMATS / "vllm_serve/older.json").read_text()
ROW = "| Llama-3.1-70B-Instruct | MI300X | {tp} | FP8 | 1024 | 1024 | {users} | {rate} |\n"
TABLE = "| Model | GPU | TP | Precision | ISL | OSL | Concurrency | Output tok/s |\n|---|---|---|---|---|---|---|---|\n"
COMMAND = "```\nvllm serve meta-llama/Llama-3.1-70B-Instruct --tensor-parallel-size 8 --max-model-len 8192\n```\n\n"


def page(*sizes: int, command_in: str = "A") -> str:
    rows = "".join(ROW.format(tp=tp, users=8 * (at + 1), rate=300 * (at + 1)) for at, tp in enumerate(sizes))
    parts = {name: COMMAND if name == command_in else "" for name in "AB"}
    return f"# Results\n\n## A\n\n{parts['A']}{TABLE}{rows}\n## B\n\n{parts['B']}Nothing.\n"


def conflicts(text: str) -> list[str]:
    return [alarm for alarm in alarms(claims_of("page.md", text)) if "in the result /" in alarm]


def test_a_command_below_the_same_heading_is_held_against_the_rows() -> None:
    assert any("'4' and '8' (tp_size" in alarm for alarm in conflicts(page(4, 4)))
    assert conflicts(page(8, 8)) == []


def test_a_command_can_be_that_of_one_row_of_a_sweep() -> None:
    assert conflicts(page(4, 8)) == []


def test_a_command_of_another_part_of_the_page_says_nothing_of_the_table() -> None:
    assert conflicts(page(4, 4, command_in="B")) == []


def test_a_remark_in_a_block_of_code_begins_no_part_of_the_page() -> None:
    commented = page(4, 4).replace("```\nvllm", "```bash\n# start it\nvllm").replace("8192\n```", "8192\n# done\n```")

    assert len(conflicts(commented)) == 2


def test_what_the_rows_leave_open_is_filled_in() -> None:
    first, _ = claims_of("page.md", page(8, 8))

    assert (first.asked.engine, first.asked.max_model_len) == ("vllm", 8192)


def test_a_log_beside_a_result_is_read_with_it() -> None:
    (claim,) = claims_of("run.json", RESULT, run__log=LOG)

    assert (claim.asked.engine_version, claim.asked.kv_cache_tokens) == ("0.32.0", 3993872)


def test_a_log_of_another_version_contradicts_the_result() -> None:
    text = json.dumps({**json.loads(RESULT), "engine_version": "0.9.2"})

    found = alarms(claims_of("run.json", text, server__log=LOG))

    assert any(alarm.startswith("FAIL engine_version_conflict") and "0.32.0" in alarm for alarm in found)


def test_of_two_logs_neither_is_taken() -> None:
    (claim,) = claims_of("run.json", RESULT, a__log=LOG, b__log=LOG)

    assert claim.asked.engine_version is None


def test_a_log_alone_is_a_claim_without_a_number_and_beside_a_result_a_part_of_it() -> None:
    (claim,) = claims_of("server.log", LOG)

    assert (claim.lineage.format, claim.asked.tp_size) == ("log", 8)
    with pytest.raises(ToldBesideError):
        claims_of("server.log", LOG, run__json=RESULT)
