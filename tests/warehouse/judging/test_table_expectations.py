"""Each of our own expectations holds of a good night, and fails where a defect is planted."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.warehouse.conftest import NIGHT
from warehouse.judging.table_expectations import EVIDENCE, Checked, check_tables
from warehouse.judging.validation import built_in
from warehouse.lake.lake import partition
from warehouse.load import LoadSummary
from warehouse.rows.records import read_night
from warehouse.schema.columns import TABLES, arrow_schema
from warehouse.schema.row import Row
from warehouse.views.tables import PART

Rows = dict[str, list[Row]]
UNIQUE, UNIQUE_TOGETHER = "expect_column_values_to_be_unique", "expect_compound_columns_to_be_unique"
BETWEEN, IN_SET = "expect_column_values_to_be_between", "expect_column_values_to_be_in_set"
PRESENT, NOT_BELOW = "expect_column_values_to_not_be_null", "expect_column_pair_values_a_to_be_greater_than_b"
SAME, ROW_COUNT = "expect_column_pair_values_to_be_equal", "expect_table_row_count_to_be_between"
MONTH = timedelta(days=30)


def _set(table: str, at: int, **values: object) -> Callable[[Rows], None]:
    return lambda rows: rows[table][at].update(values)


def _again(table: str) -> Callable[[Rows], None]:
    return lambda rows: rows[table].append(dict(rows[table][-1]))


def _accepted(rows: Rows) -> list[Row]:
    return [row for row in rows["measurements"] if row["verdict"] == "accepted"]


def _older(rows: Rows) -> None:
    for row in _accepted(rows):
        row["started_at"] -= MONTH


def _name_two_alike(rows: Rows) -> None:
    alike = [row for row in _accepted(rows) if row["driver"] == "meter"]
    alike[0]["scenario"] = alike[1]["scenario"]


def _end_before_start(rows: Rows) -> None:
    row = rows["measurements"][-1]
    row["started_at"], row["ended_at"] = rows["telemetry"][0]["at"], rows["telemetry"][0]["at"] - MONTH


def _release_before_renting(rows: Rows) -> None:
    lease = rows["leases"][0]
    lease["released_at"] = lease["rented_at"] - MONTH


# What makes each expectation fail; all are planted in one night.
PLANTED: dict[tuple[str, str, str], Callable[[Rows], None]] = {
    ("measurements", "started_at", BETWEEN): _older,
    ("series_nights", "measured_at", BETWEEN): _older,
    ("series_nights", "series, metric, lease_id", UNIQUE_TOGETHER): _name_two_alike,
    ("measurements", "run_id", UNIQUE): _again("measurements"),
    ("measurements", "verdict", IN_SET): _set("measurements", -1, verdict="fine"),
    ("measurements", "started_at", PRESENT): _set("measurements", -2, started_at=None, outcome="measured"),
    ("measurements", "ended_at, started_at", NOT_BELOW): _end_before_start,
    ("requests", "run_id", IN_SET): _set("requests", 0, run_id="of/no/run"),
    ("requests", "run_id, request_index", UNIQUE_TOGETHER): _again("requests"),
    ("requests", "ttft_ms", BETWEEN): _set("requests", 1, ttft_ms=-1.5),
    ("requests", "tpot_ms", BETWEEN): _set("requests", 2, tpot_ms=-1.0),
    ("requests", "e2el_ms", BETWEEN): _set("requests", 3, e2el_ms=-1.0, ttft_ms=None),
    ("requests", "e2el_ms, ttft_ms", NOT_BELOW): _set("requests", 4, e2el_ms=1.0, ttft_ms=2.0),
    ("requests", "output_tokens", BETWEEN): _set("requests", 5, output_tokens=-1),
    ("requests", "window", IN_SET): _set("requests", 6, window="later"),
    ("telemetry", "run_id", IN_SET): _set("telemetry", 0, run_id="of/no/run"),
    ("telemetry", "at", BETWEEN): lambda rows: rows["telemetry"][1].update(at=rows["telemetry"][1]["at"] - MONTH),
    ("telemetry", "cpu_share", BETWEEN): _set("telemetry", 2, cpu_share=1.5),
    ("telemetry", "gpu_busy_share", BETWEEN): _set("telemetry", 3, gpu_busy_share=2.0),
    ("leases", "lease_id", UNIQUE): _again("leases"),
    ("leases", "released_at", PRESENT): _set("leases", -1, released_at=None),
    ("leases", "released_at, rented_at", NOT_BELOW): _release_before_renting,
    ("leases", "usd", BETWEEN): _set("leases", 0, usd=-0.01),
    ("attempts", "lease_id", IN_SET): _set("attempts", 0, lease_id="of-no-lease"),
    ("series_verdicts", "source, series, metric, judged_night", UNIQUE_TOGETHER): _again("series_verdicts"),
    ("series_verdicts", "judgement", IN_SET): _set("series_verdicts", 0, judgement="fine"),
    ("series_verdicts", "p", BETWEEN): _set("series_verdicts", 0, p=1.5),
    ("series_verdicts", "ci_hi, ci_lo", NOT_BELOW): _set("series_verdicts", 0, ci_lo=2.0, ci_hi=1.0),
    ("change_points", "direction", IN_SET): _set("change_points", 0, direction="up"),
    ("change_points", "kind", IN_SET): _set("change_points", 0, kind="jump"),
    ("change_points", "ci_hi, ci_lo", NOT_BELOW): _set("change_points", 0, ci_lo=2.0, ci_hi=1.0),
    ("columns", "found", PRESENT): lambda rows: rows["telemetry"][0].setdefault("", "steal_share is left out"),
    ("columns", "found, declared", SAME): lambda rows: rows["telemetry"][0].setdefault("", "load_average_1m is text"),
}
EMPTY = ("measurements", None, ROW_COUNT)  # of a night without any run


def _rows_of(lake: Path) -> Rows:
    rows: Rows = {}
    for table in TABLES:
        part = partition(lake, table, NIGHT) / PART
        rows[table] = pq.ParquetFile(part).read().to_pylist() if part.is_file() else []
    at = rows["telemetry"][0]["at"]
    series = {"said_at": at, "source": "nightbench", "series": "s", "metric": "ttft_p50_ms", "judge_version": 1}
    series |= {"measured_at": at, "judgement": "equivalent", "baseline_nights": 9, "min_effect_pct": 2.0}
    rows["series_verdicts"] = [series | {"judged_night": NIGHT}]
    change = {"kind": "step", "last_good": "2026-02-01", "first_bad": NIGHT, "first_bad_at": at, "effect_pct": 5.0}
    change |= {"direction": "worse", "cause": "engine", "why": "another version", "event_id": "e"}
    rows["change_points"] = [series | change]
    return rows


def _write(staging: Path, rows: Rows, without: str = "", as_text: str = "") -> Path:
    for table in TABLES:
        fields = [pa.field(field.name, pa.string() if field.name == as_text else field.type)
                  for field in arrow_schema(table) if field.name != without]  # fmt: skip
        stored = [{f.name: str(row.get(f.name)) if f.name == as_text else row.get(f.name) for f in fields}
                  for row in rows[table]]  # fmt: skip
        partition(staging, table, NIGHT).mkdir(parents=True)
        pq.write_table(pa.Table.from_pylist(stored, schema=pa.schema(fields)), partition(staging, table, NIGHT) / PART)
    return staging


@pytest.fixture(scope="module")
def planted(
    loaded: tuple[Path, LoadSummary], tmp_path_factory: pytest.TempPathFactory
) -> dict[tuple[str, str | None, str], Checked]:
    """What is found of a night with every defect, and, of its measurements, of a night without any."""
    rows = _rows_of(loaded[0] / "lake")
    for plant in PLANTED.values():
        plant(rows)
    plan = read_night((loaded[0] / "runs" / NIGHT / "night.json").read_bytes())
    staging = _write(tmp_path_factory.mktemp("planted"), rows, without="steal_share", as_text="load_average_1m")
    empty = _write(tmp_path_factory.mktemp("empty"), {table: [] for table in TABLES})
    found = [*check_tables(staging, NIGHT, plan).unmet, *check_tables(empty, NIGHT, plan, {"measurements"}).unmet]
    return {(one.row["table_name"], one.row["column_name"], one.row["expectation"]): one for one in found}


def _all_expectations() -> list[tuple[str, str | None, str]]:
    suites = {table: expectations for table, expectations in built_in().items() if table != EVIDENCE}
    return [(table, ", ".join(one.columns) or None, one.type) for table, found in suites.items() for one in found]


@pytest.mark.parametrize("expectation", _all_expectations(), ids=lambda one: f"{one[0]}-{one[1]}-{one[2]}")
def test_each_expectation_is_seen_to_fail_on_a_planted_defect(
    planted: dict[tuple[str, str | None, str], Checked], expectation: tuple[str, str | None, str]
) -> None:
    assert expectation in {*PLANTED, EMPTY}
    assert expectation in planted
    found = planted[expectation].row
    assert (found["error"], found["night"], found["origin"]) == (None, NIGHT, "nightbench")
    if expectation != EMPTY:
        assert found["unexpected_count"] > 0
        assert found["examples"]


def test_a_negative_latency_is_named_with_its_request_and_run(
    planted: dict[tuple[str, str | None, str], Checked],
) -> None:
    found = planted["requests", "ttft_ms", BETWEEN]

    [run_id] = found.run_ids
    assert found.row["examples"] == [f"run_id = {run_id}, request_index = 1, repeat = 0, ttft_ms = -1.5"]
    assert str(found) == (
        'requests.ttft_ms: expect_column_values_to_be_between {"min_value": 0} does not hold: of '
        f"{found.row['row_count']} values 1 are unexpected: {found.row['examples'][0]}"
    )


def test_a_column_of_another_type_is_named_with_its_table(planted: dict[tuple[str, str | None, str], Checked]) -> None:
    assert planted["columns", "found, declared", SAME].row["examples"] == [
        "table = telemetry, column = load_average_1m, found = VARCHAR, declared = DOUBLE"
    ]


def test_every_expectation_about_a_good_night_holds(loaded: tuple[Path, LoadSummary]) -> None:
    found = pq.ParquetFile(partition(loaded[0] / "lake", "expectations", NIGHT) / PART).read().to_pylist()

    assert {row["status"] for row in found} == {"PASS"}
    assert {row["table_name"] for row in found} == set(built_in()) - {EVIDENCE}
