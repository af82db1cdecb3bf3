from pathlib import Path

import pytest

from bench.audit.rules import EVIDENCE_COLUMNS, NIGHT_RULES
from bench.evidence_columns import CLIENT_CLOCK_ERROR_OVER_ALLOWED
from tests.bench.audit.test_measurement import KINDS
from tests.warehouse.folders import whole_night
from tests.warehouse.rows.test_session_results import OF_SESSIONS
from warehouse.lake.query import run_sql
from warehouse.load import LoadSummary, load_night
from warehouse.schema.column import Column
from warehouse.schema.columns import COLUMNS, TABLES, Table, outside_bounds
from warehouse.schema.start_columns import START_COLUMNS
from warehouse.schema.workload_columns import (
    ANSWERS_ASKED,
    DISAGGREGATED_ASKED,
    KV_OFFLOAD_ASKED,
    SPECULATION_ASKED,
    WORKLOAD_COLUMNS,
)

# Imports: tests/warehouse/test_imports.py. Scores and expectations: tests/warehouse/judging/. Searches:
# ../test_searches.py. Searches for flags: ../rows/test_tuning_rows.py. Commands: ../rows/test_command_rows.py.
# Histories: ../test_histories.py. What was said: ../trends/test_kept.py.
SAID = ("series_verdicts", "change_points", "acknowledgements")
OF_SEARCHES = ("search_probes", "tuning")
NOT_OF_A_NIGHT = ("claim", "expectations", "quality_scores", *OF_SEARCHES, "command_metrics", "history", *SAID)
COMPARED = ["logprob_mean_earlier", "ev_greedy_agreed_earlier_share", "ev_logprob_fall"]


@pytest.mark.parametrize("table", TABLES)
def test_no_two_columns_of_a_table_have_one_name(table: Table) -> None:
    names = [column.name for column in COLUMNS[table]]

    assert len(names) == len(set(names))


@pytest.mark.parametrize("table", [table for table in TABLES if not table.startswith(NOT_OF_A_NIGHT)])
def test_every_declared_column_is_written_by_some_row(loaded: tuple[Path, LoadSummary], table: Table) -> None:
    names = [column.name for column in COLUMNS[table]]
    counted = ", ".join(f'count("{name}") AS "{name}"' for name in names)

    # A run that never started is written from the plan alone; it must not hide what records leave out.
    rows = "measurements WHERE outcome <> 'not-run'" if table == "measurements" else table

    found = run_sql(loaded[0], f"SELECT {counted} FROM {rows}").dicts()[0]

    # Comparisons with earlier nights are NULL in a first one; tests/warehouse/judging/ sees them written. Where memory
    # ran out: tests/warehouse/test_load_fallbacks.py. Images: tests/warehouse/rows/test_stack.py. Expert parallelism:
    # tests/warehouse/rows/test_eight_gpus.py.
    elsewhere = {"ep_size", "fallback_of", "images_per_prompt", "image_width", "image_height", "image"}
    elsewhere |= {"image_version", "image_commit", "machine"}  # of several machines: tests/flows/test_machines.py
    elsewhere |= {"catalog_model", "catalog_gpu"}  # tests/warehouse/rows/test_eight_gpus.py
    elsewhere |= {"within_slo_share", "goodput_per_s", "goodput_tok_per_s"}  # tests/warehouse/test_searches.py
    elsewhere |= {"repeats_ended_by", "half_width_max", "runs_s", "scenario_s"}  # tests/warehouse/test_added_repeats.py
    elsewhere |= {
        column.name
        for column in (*ANSWERS_ASKED, *DISAGGREGATED_ASKED, *KV_OFFLOAD_ASKED, *SPECULATION_ASKED, *WORKLOAD_COLUMNS)
    }  # ../rows/test_workload_results.py
    elsewhere |= {rule.column for rule in NIGHT_RULES if rule.only_where in KINDS}
    elsewhere |= set(OF_SESSIONS)  # tests/warehouse/rows/test_session_results.py
    elsewhere |= {column.name for column in START_COLUMNS}  # tests/warehouse/rows/test_start_results.py
    elsewhere |= {"client_hosts", "client_clock_error_ms", CLIENT_CLOCK_ERROR_OVER_ALLOWED}  # of several client hosts:
    # tests/flows/test_client_hosts.py
    elsewhere |= {"power_cap_asked_w"}  # tests/flows/test_power_caps.py
    elsewhere |= {"series_identity"}  # tests/warehouse/trends/test_own_series.py
    missing = [name for name in names if not found[name] and "lm_eval" not in name and name not in elsewhere]
    assert missing == (COMPARED if table == "measurements" else [])


@pytest.mark.parametrize("table", TABLES)
def test_the_views_have_exactly_the_declared_columns_and_types(loaded: tuple[Path, LoadSummary], table: Table) -> None:
    described = run_sql(loaded[0], f"DESCRIBE {table}").dicts()

    assert {row["column_name"]: row["column_type"] for row in described} == {
        column.name: column.duckdb_type for column in COLUMNS[table]
    }


def test_the_night_is_text_even_where_it_looks_like_a_number(tmp_path: Path) -> None:
    whole_night(tmp_path, "007")

    load_night(tmp_path, "007")

    assert run_sql(tmp_path, "SELECT night FROM measurements").rows == (("007",),)


def test_every_evidence_column_of_the_audit_is_declared() -> None:
    assert set(EVIDENCE_COLUMNS) <= {column.name for column in COLUMNS["measurements"]}


@pytest.mark.parametrize("column", [c for c in COLUMNS["measurements"] if c.low is not None], ids=lambda c: c.name)
def test_a_value_below_what_is_possible_is_named(column: Column) -> None:
    low = column.low or 0.0

    assert outside_bounds({column.name: low - 1}) == (column.name,)
    assert outside_bounds({column.name: low}) == ()


def test_a_share_above_one_is_not_possible() -> None:
    assert outside_bounds({"steal_share": 1.01}) == ("steal_share",)
