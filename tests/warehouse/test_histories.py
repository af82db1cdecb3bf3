"""Histories of other people's nights: every value or a sentence, and there again after a rebuild."""

import hashlib
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest

from bench.errors import UnreadableResultError, UsageError
from tests.data.history import make
from warehouse.histories import import_history, reader_of
from warehouse.importers.history.action_benchmark import read_action_benchmark
from warehouse.importers.history.check import HistoryCheck
from warehouse.importers.history.long_table import HistoryOptions, column_map, is_long_table
from warehouse.importers.history.row import HistoryRow, moment_in_name, moment_of
from warehouse.importers.parsing.document import Document, read_document
from warehouse.lake.query import run_sql
from warehouse.rebuild import rebuild
from warehouse.schema.history_columns import HISTORY_POINT_COLUMNS

DATA = Path(__file__).parents[1] / "data"
HISTORIES = DATA / "history"
PLAIN = HistoryOptions()
WIDE = HistoryOptions(
    column_map(["measured_at=day", "series=case+gpu", "value=tok_s+ttft"]),
    name_pattern=r"(?P<python>py[\d.]+)-(?P<torch>torch[\d.]+)",
    source="ci",
)


def read(path: Path, options: HistoryOptions = PLAIN) -> tuple[list[HistoryRow], dict[str, int]]:
    """The kept values of a file, and how often each sort of doubt is."""
    document, check = read_document(str(path), path.read_bytes()), HistoryCheck()
    rows = [row for row, _ in check.passed(reader_of(document, options)(document, options))]
    return rows, {code: count for code, count, _ in check.remarks()}


def points(data: Path, columns: str) -> list[tuple[object, ...]]:
    return list(run_sql(data, f"SELECT {columns} FROM history_points ORDER BY ALL").rows)


def table(tmp_path: Path, *rows: str, header: str = "timestamp,series,metric,value") -> Path:
    file = tmp_path / "table.csv"
    file.write_text("\n".join([header, *rows]) + "\n")
    return file


def test_the_files_are_those_of_their_maker(tmp_path: Path) -> None:
    make.main(tmp_path)

    for name in ("long.csv", "wide.csv", "data.js"):
        assert (tmp_path / name).read_bytes() == (HISTORIES / name).read_bytes()


def test_a_long_table_is_read_as_its_columns_stand() -> None:
    rows, _ = read(HISTORIES / "long.csv")

    assert len(rows) == 240
    assert rows[2] == HistoryRow(
        series="Base_A/sort",
        metric="value",
        measured_at=make.night(0),
        value=rows[2].value,
        place="line 4 of long.csv",
        unit="ms",
        source="example/suite@results",
        spread=0.01,
        is_lower_better=True,
        note="stddev=0.01; lower_is_better=True",
        stack={"driver": "25.1", "host": "host_Base_A", "engine_commit": "c000"},
    )


def test_a_page_of_github_action_benchmark_is_read_without_its_duplicates() -> None:
    rows, said = read(HISTORIES / "data.js")

    assert len(rows) == 40 * 12
    assert said == {"duplicate_run": 12, "zero": 3, "no_client_version": 480, "no_driver": 480, "no_host": 480}
    assert {(row.metric, row.unit) for row in rows if row.series == "model-a 1024/1024 c=8"} == {
        ("TPOT", "ms"),
        ("TTFT", "ms"),
        ("throughput", "tok/s"),
    }


def test_the_json_of_such_a_page_gives_the_same_values(tmp_path: Path) -> None:
    file = tmp_path / "data.js"
    file.write_text(json.dumps(make.page()))

    assert read(file) == read(HISTORIES / "data.js")


@pytest.mark.parametrize(
    ("said", "value", "spread"),
    [
        ("±0.74%", 500_000, 3700.0),
        ("± 0.74 %", "500,000", 3700.0),
        ("±0.5%", -200, 1.0),
        ("± 5", 500_000, 5.0),
        ("±0.74%", None, None),
        ("", 500_000, None),
        (None, 500_000, None),
    ],
)
def test_a_range_in_percent_is_a_share_of_the_value(
    said: str | None, value: str | float | None, spread: float | None
) -> None:
    bench = {"name": "a", "unit": "ops/sec", "value": value, "range": said}
    run = {"commit": {"id": "c"}, "date": 1_772_000_000_000, "tool": "benchmarkjs", "benches": [bench]}
    document = Document("data.json", json.dumps({"lastUpdate": 1, "entries": {"s": [run]}}).encode())

    (row,) = read_action_benchmark(document, PLAIN)

    assert row.spread == (None if spread is None else pytest.approx(spread))


def test_a_wide_table_is_read_by_a_map_and_its_names_are_taken_apart() -> None:
    rows, _ = read(HISTORIES / "wide.csv", WIDE)

    assert {(row.source, row.series, row.metric) for row in rows} == {
        ("ci", f"{case}/H100", metric) for case in ("llama", "once") for metric in ("tok_s", "ttft")
    }


def test_everything_that_is_wrong_with_a_history_is_counted() -> None:
    _, said = read(HISTORIES / "wide.csv", WIDE)

    assert said == {
        "not_finite": 1,
        "no_number": 1,
        "no_zone": 44,
        "unit_change": 2,
        "same_stamp": 6,
        "clock_backwards": 2,
        "one_point": 2,
        "no_host": 44,
        "no_client_version": 44,
        "no_driver": 44,
    }


@pytest.mark.parametrize("seed", [None, -1, 1], ids=["rising", "falling", "in any order"])
def test_values_of_one_time_are_counted_in_any_order(seed: int | None) -> None:
    """Forty times, every fourth one twice; while they only rise or fall, none is looked up."""
    start = datetime(2026, 3, 1, tzinfo=UTC)
    stamps = sorted([*range(40), *range(0, 40, 4)], reverse=seed == -1)
    if seed == 1:
        Random(1).shuffle(stamps)
    rows = [
        HistoryRow("s", "m", start + timedelta(hours=stamp), 1.0, "", run_id=str(at)) for at, stamp in enumerate(stamps)
    ]
    check = HistoryCheck()

    assert len(list(check.passed(iter(rows)))) == 50
    assert {code: count for code, count, _ in check.remarks()}["same_stamp"] == 10


def test_each_doubt_is_a_sentence_with_its_count_and_a_place() -> None:
    document, check = read_document("wide.csv", (HISTORIES / "wide.csv").read_bytes()), HistoryCheck()
    list(check.passed(reader_of(document, WIDE)(document, WIDE)))

    messages = {code: message for code, _, message in check.remarks()}

    assert messages["not_finite"] == (
        "1 value(s) are NaN or infinite and count as failures, the first at line 6 of wide.csv"
    )
    assert messages["unit_change"].endswith("line 21 of wide.csv: llama/H100 tok_s from ms to s")
    assert (
        messages["no_host"]
        == "no row states host: a change of host there cannot be distinguished from one of the engine"
    )


def test_a_failure_has_no_value_and_a_reason(tmp_path: Path) -> None:
    lines = [f"2026-01-0{day},a,m,{value}" for day, value in enumerate(["0", "-1", "NaN", "n/a", "inf", "3"], 1)]
    file = table(tmp_path, *lines)
    document = read_document(str(file), file.read_bytes())

    found = list(HistoryCheck().passed(reader_of(document, PLAIN)(document, PLAIN)))

    assert [(row.value, failure) for row, failure in found] == [
        (None, "zero, counted as a failure"),
        (None, "below zero"),
        (None, "NaN or infinite"),
        (None, "no number"),
        (None, "NaN or infinite"),
        (3.0, None),
    ]


def test_the_newest_first_is_no_clock_that_ran_back(tmp_path: Path) -> None:
    _, said = read(table(tmp_path, *(f"2026-01-0{day},a,m,1" for day in (5, 4, 3, 2))))

    assert "clock_backwards" not in said


def test_rows_without_a_time_are_counted(tmp_path: Path) -> None:
    rows, said = read(table(tmp_path, "2026-01-01,a,m,1", "May 3,a,m,2"))

    assert (len(rows), said["no_time"]) == (1, 1)


def test_times_in_milliseconds_since_1970_are_times(tmp_path: Path) -> None:
    (row,), _ = read(table(tmp_path, f"{make.START.timestamp() * 1000:.0f},a,m,1"))

    assert row.measured_at == make.START


def test_importing_a_history_again_changes_nothing_and_a_rebuild_reads_it_again(tmp_path: Path) -> None:
    first = import_history(tmp_path, HISTORIES / "wide.csv", WIDE)
    before = points(tmp_path, "*")
    again = import_history(tmp_path, HISTORIES / "wide.csv", WIDE)

    rebuild(tmp_path)

    assert (first.is_new, again.is_new) == (True, False)
    assert len(before) == first.point_count == 44
    assert points(tmp_path, "*") == before
    kept = hashlib.sha256((HISTORIES / "wide.csv").read_bytes()).hexdigest()
    assert (tmp_path / "imports" / kept / "raw").read_bytes() == (HISTORIES / "wide.csv").read_bytes()


def test_other_options_replace_the_rows_of_a_file(tmp_path: Path) -> None:
    import_history(tmp_path, HISTORIES / "wide.csv", WIDE)

    found = import_history(tmp_path, HISTORIES / "wide.csv", HistoryOptions(WIDE.columns, source="other"))

    assert found.is_new
    assert points(tmp_path, "DISTINCT source") == [("other",)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (PLAIN, "wide.csv has no column for measured_at and value: pass --map measured_at=COLUMN"),
        (
            HistoryOptions((("measured_at", "when"),)),
            "--map measured_at=when: wide.csv has no such column; it has day, case",
        ),
        (HistoryOptions(WIDE.columns, name_pattern="("), "--name-pattern '(' is not a regular expression"),
    ],
)
def test_options_that_do_not_fit_are_refused_with_the_columns(options: HistoryOptions, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        read(HISTORIES / "wide.csv", options)


@pytest.mark.parametrize("said", ["value", "=x", "speed=x"])
def test_a_map_of_another_form_is_refused(said: str) -> None:
    with pytest.raises(UsageError, match="--map"):
        column_map([said])


@pytest.mark.parametrize("cut", [40, 400, 4000])
def test_a_page_that_is_cut_off_is_refused(tmp_path: Path, cut: int) -> None:
    file = tmp_path / "data.js"
    file.write_bytes((HISTORIES / "data.js").read_bytes()[:cut])

    with pytest.raises(UnreadableResultError):
        read(file)


def test_a_line_with_another_number_of_cells_is_refused_and_nothing_is_kept(tmp_path: Path) -> None:
    with pytest.raises(UnreadableResultError, match="line 3 has 3 cells, its header has 4"):
        import_history(tmp_path, table(tmp_path, "2026-01-01,a,m,1", "2026-01-02,a,m"), PLAIN)

    assert not list((tmp_path / "imports").glob("[0-9a-f]*"))
    assert not list((tmp_path / "lake").glob("history*"))


@pytest.fixture
def undated() -> str:
    """A result of a known tool without its date."""
    told = json.loads((DATA / "vllm-results" / "vllm_bench_serve.json").read_text())
    told.pop("date", None)
    return json.dumps(told)


def test_dated_results_of_a_known_tool_are_nights_of_a_series(tmp_path: Path, undated: str) -> None:
    file = tmp_path / "serve-2026-03-02T013000.json"
    file.write_text(undated)

    rows, _ = read(file)

    assert {row.measured_at for row in rows} == {datetime(2026, 3, 2, 1, 30, tzinfo=UTC)}
    assert {row.metric for row in rows} >= {"output_throughput_tok_per_s", "ttft_p50_ms", "tpot_p99_ms"}


@pytest.mark.parametrize(
    ("name", "stated", "at"),
    [
        ("serve.json", "20260302-013000", datetime(2026, 3, 2, 1, 30, tzinfo=UTC)),
        ("serve.json", "2026-03-02 01:30:00", datetime(2026, 3, 2, 1, 30, tzinfo=UTC)),
        ("2026-03-02/serve.json", None, datetime(2026, 3, 2, tzinfo=UTC)),
        ("2026-01-01/run_2026_03_02/a/qps_1.json", None, datetime(2026, 3, 2, tzinfo=UTC)),
        ("2026-03-01/serve.json", "20260302-013000", datetime(2026, 3, 2, 1, 30, tzinfo=UTC)),
    ],
)
def test_the_time_of_a_result_is_in_it_or_in_its_name_or_in_its_folder(
    undated: str, name: str, stated: str | None, at: datetime
) -> None:
    told = json.loads(undated) | ({} if stated is None else {"date": stated})
    document, check = read_document(name, json.dumps(told).encode()), HistoryCheck(is_one_night=True)

    rows = [row for row, _ in check.passed(reader_of(document, PLAIN)(document, PLAIN))]

    assert {row.measured_at for row in rows} == {at}
    assert {"no_zone", "one_point"} & {code for code, _, _ in check.remarks()} == {"no_zone"}


def test_each_line_of_a_result_has_its_own_time(undated: str) -> None:
    told = [json.loads(undated) | {"date": f"2026030{day}-013000"} for day in (1, 2)]
    document = read_document("serve-2026-01-01.jsonl", "".join(f"{json.dumps(one)}\n" for one in told).encode())

    rows = list(reader_of(document, PLAIN)(document, PLAIN))

    assert {row.measured_at for row in rows} == {datetime(2026, 3, day, 1, 30, tzinfo=UTC) for day in (1, 2)}


def test_the_repeats_of_a_sweep_are_not_one_run_that_was_read_before(undated: str) -> None:
    told = [json.loads(undated) | {"output_throughput": 100.0 + at, "run_number": at} for at in range(3)]
    document, check = read_document("2026-03-01/summary.json", json.dumps(told).encode()), HistoryCheck()

    rows = [row for row, _ in check.passed(reader_of(document, PLAIN)(document, PLAIN))]

    assert [row.value for row in rows if row.metric == "output_throughput_tok_per_s"] == [100.0, 101.0, 102.0]
    assert {"same_stamp", "duplicate_run"} & {code for code, _, _ in check.remarks()} == {"same_stamp"}


@pytest.mark.parametrize("text", ["202603010200", "20260301020000"])
def test_a_compact_date_is_not_a_number_of_milliseconds(text: str) -> None:
    at, _ = moment_of(text)

    assert at == datetime(2026, 3, 1, 2, tzinfo=UTC)


@pytest.mark.parametrize("name", ["job-1767579420.json", "a12026030112.json", "20261301.json", "v2026.json"])
def test_a_number_that_is_no_date_is_no_time(name: str) -> None:
    assert moment_in_name(name) is None


def test_a_result_without_a_time_is_refused(tmp_path: Path, undated: str) -> None:
    file = tmp_path / "serve.json"
    file.write_text(undated)

    with pytest.raises(UnreadableResultError, match="put the date into its name"):
        read(file)


def test_the_header_of_the_known_histories_needs_no_map(tmp_path: Path) -> None:
    header = "source_repo,source_path,commit,timestamp,series,metric,unit,value,engine_version,host,repeat,note"
    line = "r,p,c,2026-03-14T13:22:43+00:00,s,m,tok/s,5.5,,,,raw=x; run=23088513632; read_at=e"

    (row,), _ = read(table(tmp_path, line, header=header))

    assert (row.source, row.run_id, row.stack, row.value) == ("r", "23088513632", {"engine_commit": "c"}, 5.5)


LONG = "timestamp,series,metric,value\n2026-03-01,a,m,1.5\n2026-03-02,a,m,2.5\n"
QUOTED = '"timestamp","series","metric","value"\n2026-03-01,a,m,1.5\n2026-03-02,a,m,2.5\n'


@pytest.mark.parametrize("stem", ["table", "results-20251111"])
@pytest.mark.parametrize(
    ("suffix", "written"),
    [
        ("csv", LONG.encode()),
        ("csv", LONG.replace("\n", "\r\n").encode("utf-8-sig")),
        ("csv", QUOTED.encode()),
        ("csv", QUOTED.encode("utf-8-sig")),
        ("tsv", LONG.replace(",", "\t").encode()),
    ],
    ids=["plain", "of a spreadsheet", "quoted", "quoted, of a spreadsheet", "tabs"],
)
def test_a_long_table_is_one_however_its_header_is_written(
    tmp_path: Path, stem: str, suffix: str, written: bytes
) -> None:
    file = tmp_path / f"{stem}.{suffix}"
    file.write_bytes(written)

    rows, _ = read(file)

    assert [(row.series, row.metric, row.value, row.measured_at) for row in rows] == [
        ("a", "m", 1.5, datetime(2026, 3, 1, tzinfo=UTC)),
        ("a", "m", 2.5, datetime(2026, 3, 2, tzinfo=UTC)),
    ]


def test_a_header_that_is_not_csv_is_no_long_table() -> None:
    assert not is_long_table(Document("table.csv", b'"timestamp"x,series,value\n'))


def test_every_declared_column_of_a_history_is_written(tmp_path: Path) -> None:
    names = [column.name for column in HISTORY_POINT_COLUMNS if column.name not in {"night", "place", "failure"}]
    values = {"measured_at": "2026-01-01T00:00:00+00:00", "value": "2.5", "spread": "0.1", "is_lower_better": "true"}
    full = {name: f"a {name}" for name in names} | values | {"note": "lower_is_better=True"}
    lines = [",".join({**full, "value": value, "run_id": value}.values()) for value in ("2.5", "0")]
    file = table(tmp_path, *lines, header=",".join(names))

    import_history(tmp_path / "data", file, PLAIN)

    counted = ", ".join(f'count("{column.name}")' for column in HISTORY_POINT_COLUMNS)
    (counts,) = run_sql(tmp_path / "data", f"SELECT {counted} FROM history_points").rows
    assert all(counts)
