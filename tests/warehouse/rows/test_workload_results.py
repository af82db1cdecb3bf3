"""The columns of single kinds of workload: each is written, and the night's page shows those that a run has."""

from dataclasses import replace
from pathlib import Path

import pytest

from bench.record import RunRecord
from bench.suite.engine import Disaggregated, Engine
from bench.suite.prompts import Prompts
from bench.suite.workloads.answer_form import AnswerForm
from bench.suite.workloads.cancel import Cancel
from tests.bench.builders import CLOSED, closed_loop, healthy, with_workload
from tests.warehouse.conftest import NIGHT
from tests.warehouse.folders import Shape, Told, write_night, write_run
from warehouse.lake.query import run_sql
from warehouse.load import load_night
from warehouse.report.page import write_report
from warehouse.rows.run_folder import RunId, read_run
from warehouse.rows.run_rows import run_rows
from warehouse.rows.workload_results import (
    adapters,
    answer_validity,
    cancels,
    disaggregated,
    disaggregated_asked,
    embeddings,
    images,
    kv_offload,
    kv_offload_asked,
    repetition,
    speculation,
)
from warehouse.schema.row import Row
from warehouse.schema.workload_columns import SPECULATION_ASKED, WORKLOAD_COLUMNS

DRAFTS = {
    "spec_decode_num_drafts_total": 800.0,
    "spec_decode_num_draft_tokens_total": 2400.0,
    "spec_decode_num_accepted_tokens_total": 1200.0,
}
BY_POSITION = {f"spec_decode_num_accepted_tokens_per_pos_total.{place}": 600.0 - 50 * place for place in range(8)}
TIER = {
    "external_prefix_cache_queries_total": 800.0,
    "external_prefix_cache_hits_total": 200.0,
    "kv_offload_load_bytes_total": 3e6,
    "kv_offload_store_bytes_total": 5e6,
}
SPLIT = {
    "router_requests_total": 40.0,
    "router_prefill_seconds_sum": 2.0,
    "router_prefill_seconds_count": 40.0,
    "router_handover_seconds_sum": 0.5,
    "router_handover_seconds_count": 40.0,
    "nixl_xfer_time_seconds_sum": 0.16,
    "nixl_xfer_time_seconds_count": 40.0,
    "nixl_bytes_transferred_sum": 1e9,
    "prompt_tokens_total": 5120.0,
    "prefill_prompt_tokens_total": 5120.0,
    "external_prefix_cache_hits_total": 4480.0,
}
SPECULATING = ("--speculative-config", '{"model": "a/draft", "num_speculative_tokens": 3}')


def _night(data: Path, flags: tuple[str, ...], prompts: Prompts) -> Row:
    """A night of one run with these flags, whose server drafted; its row."""
    night = write_night(data, NIGHT, {"chat": Shape()})
    (run,) = night.runs
    engine = Engine(version="0.32.0", max_model_len=4096, flags=("--no-enable-prefix-caching", *flags))
    work = run.scenario.workload.model_copy(update={"prompts": prompts})
    scenario = run.scenario.model_copy(update={"engine": engine, "workload": work})
    run = run.model_copy(update={"scenario": scenario})
    (data / "runs" / NIGHT / "night.json").write_text(night.model_copy(update={"runs": (run,)}).model_dump_json())
    folder = write_run(data, night, run, Shape(), Told(counters=DRAFTS))
    return run_rows(RunId(NIGHT, scenario.scenario_id, 0), read_run(folder)).measurement


def _offloading(record: RunRecord) -> RunRecord:
    """The same run with a tier behind the KV cache."""
    engine = record.asked.engine.model_copy(update={"flags": ("--kv-offloading-size", "64")})
    return record.model_copy(update={"asked": record.asked.model_copy(update={"engine": engine})})


def test_a_tier_behind_the_kv_cache_is_counted_where_the_flags_ask_for_one() -> None:
    record = healthy(closed_loop(CLOSED, [1.0] * 40), CLOSED).record
    offloading = _offloading(record)

    assert list(kv_offload(offloading, TIER).values()) == [800, 200, 3_000_000, 5_000_000, 0.25]
    assert set(kv_offload(offloading, None).values()) == {None}
    assert kv_offload_asked(offloading.asked.engine) == {"kv_offload_backend": "native", "kv_offload_gib": 64.0}
    assert (kv_offload(record, TIER), kv_offload_asked(record.asked.engine)) == ({}, {})


def test_prefill_and_decode_on_servers_of_their_own_have_columns() -> None:
    closed = healthy(closed_loop(CLOSED, [1.0] * 40), CLOSED)
    split = Disaggregated(connector="LMCacheConnectorV1", decode_flags=("--max-num-seqs", "64"))
    engine = closed.record.asked.engine

    asked = disaggregated_asked(engine.model_copy(update={"disaggregated": split}))

    assert asked == {
        "kv_connector": "LMCacheConnectorV1",
        "prefill_flags": [],
        "decode_flags": ["--max-num-seqs", "64"],
    }
    row = disaggregated(closed.record, closed.report, SPLIT)
    assert (row["prefill_mean_ms"], row["handover_mean_ms"], row["kv_transfer_mean_ms"]) == (50.0, 12.5, 4.0)
    assert (disaggregated_asked(engine), disaggregated(closed.record, closed.report, TIER)) == ({}, {})


def test_every_column_of_a_kind_of_workload_is_written() -> None:
    closed = healthy(closed_loop(CLOSED, [1.0] * 40), CLOSED)
    work = CLOSED.model_copy(update={"prompts": Prompts(kind="repeated", form="text")})
    asked = closed.record.model_copy(update={"asked": with_workload(work)})
    form = AnswerForm(grammar='root ::= "yes"', pattern="yes")
    formed = closed.record.model_copy(update={"asked": with_workload(CLOSED.model_copy(update={"answers": form}))})
    written = [speculation(DRAFTS | BY_POSITION), repetition(asked, closed.report)]
    written.append(answer_validity(formed, replace(closed.report, valid_share=1.0, first_use_s=0.5)))
    cancel = closed.record.model_copy(
        update={"asked": with_workload(CLOSED.model_copy(update={"cancel": Cancel(share=0.5, after_s=(1.0, 2.0))}))}
    )
    adapted = closed.record.model_copy(
        update={
            "asked": with_workload(CLOSED.model_copy(update={"adapters": ("a", "b")})),
            "adapters_like_base": ("b",),
        }
    )
    written.append(adapters(adapted, replace(closed.report, models=("a", "a", "b", "a"))))
    assert written[-1] == {"adapters_used": 2, "adapter_top_share": 0.75, "adapters_like_base": ["b"]}
    written.append(cancels(cancel, closed.report, {"generation_tokens_total": 1.0}))
    pictures = Prompts(kind="images", form="chat", width=64, height=64, images=2)
    pictured = closed.record.model_copy(
        update={"asked": with_workload(CLOSED.model_copy(update={"prompts": pictures}))}
    )
    written.append(images(pictured, closed.report, {"mm_cache_queries_total": 84.0, "mm_cache_hits_total": 21.0}))
    assert written[-1] == {"images_sent": 84, "server_images_read": 84, "image_cache_hit_share": 0.25}
    written.append(embeddings(closed.record, replace(closed.report, dimensions=64)))
    read = closed.report.requests.input_tokens.sum() / closed.report.requests.window_s
    assert (written[-1]["embedding_dimensions"], written[-1]["input_throughput_tok_per_s"]) == (64, pytest.approx(read))
    written.append(kv_offload(_offloading(closed.record), TIER))
    written.append(disaggregated(closed.record, closed.report, SPLIT))
    declared = {column.name for column in WORKLOAD_COLUMNS} | {"is_speculative"}

    assert {name for row in written for name in row} == declared
    assert written[2]["first_use_ttft_ms"] == 500.0
    assert (repetition(closed.record, closed.report), answer_validity(closed.record, closed.report)) == ({}, {})
    assert set(speculation(dict.fromkeys(DRAFTS, 0.0))) == set()
    assert set(speculation(None)) == set()


def test_acceptance_is_counted_and_what_was_requested_stands_beside_it(tmp_path: Path) -> None:
    row = _night(tmp_path, SPECULATING, Prompts(kind="written", form="text"))

    (folder,) = (tmp_path / "runs" / NIGHT).glob("*/0")
    claim = run_rows(RunId(NIGHT, folder.parent.name, 0), read_run(folder)).asked
    assert claim is not None
    assert (claim.claim.asked.is_speculative, claim.claim.asked.spec_tokens_per_step) == (True, 2.5)
    requested = [row[column.name] for column in SPECULATION_ASKED]
    assert requested == [True, "draft_model", 3, "a/draft"]
    assert (row["spec_acceptance_length"], row["spec_acceptance_rate"]) == (2.5, 0.5)
    assert [row[f"ev_spec_{name}"] for name in ("on_random", "idle", "length_over_max")] == [0.0, 0.0, 2.5 / 4]


@pytest.mark.parametrize(
    ("flags", "prompts", "found"),
    [
        (SPECULATING, Prompts(kind="written", form="text"), {}),
        # The flags do not say so, as an image or a configuration file can: the counters do.
        ((), Prompts(), {"speculation_on_random_prompts": "FAIL"}),
    ],
)
def test_a_night_on_random_prompts_is_rejected_and_one_on_written_ones_is_shown_with_its_acceptance(
    tmp_path: Path, flags: tuple[str, ...], prompts: Prompts, found: dict[str, str]
) -> None:
    _night(tmp_path, flags, prompts)
    load_night(tmp_path, NIGHT)

    doubts = "SELECT code, status FROM findings WHERE status IN ('WARN', 'FAIL') AND code LIKE '%specul%'"
    assert dict(tuple(row) for row in run_sql(tmp_path, doubts).rows) == found
    page = write_report(tmp_path, NIGHT).read_text()
    assert ("Numbers of single kinds of workload" in page, "spec acceptance length" in page.replace("_", " ")) == (
        True,
        True,
    )
