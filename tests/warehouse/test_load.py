import hashlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.errors import LoadIntoWarehouseError, UsageError
from nights.durable import write_text
from tests.warehouse.conftest import NIGHT
from tests.warehouse.folders import Shape, seal, whole_night, write_night
from warehouse.lake.query import run_sql
from warehouse.load import LoadSummary, load_night
from warehouse.rebuild import not_here, rebuild
from warehouse.schema.measurement_columns import EVIDENCE_COLUMNS
from warehouse.schema.metric_columns import METRIC_COLUMNS


def _hashes(data: Path) -> dict[str, str]:
    files = [path for path in data.rglob("*") if path.is_file() and "runs" not in path.relative_to(data).parts]
    return {str(path.relative_to(data)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_every_planned_run_is_one_row(loaded: tuple[Path, LoadSummary]) -> None:
    found = dict(run_sql(loaded[0], "SELECT scenario, verdict FROM measurements").rows)

    assert found == {
        "chat": "suspect",  # ten of its requests failed
        "steady": "accepted",
        "long": "accepted",
        "peer": "accepted",
        "broken": "failed",
        "never": "not-run",
    }
    assert loaded[1].verdicts == {"accepted": 3, "failed": 1, "not-run": 1, "suspect": 1}
    assert loaded[1].warnings == ()


def test_failed_and_unstarted_runs_have_nothing_measured(loaded: tuple[Path, LoadSummary]) -> None:
    rows = run_sql(loaded[0], "SELECT * FROM measurements WHERE outcome <> 'measured'").dicts()

    assert len(rows) == 2
    measured = [column.name for column in (*METRIC_COLUMNS, *EVIDENCE_COLUMNS)]
    assert [name for row in rows for name in measured if row[name] is not None] == []
    assert all(row["reason"] and row["model"] == "tiny" for row in rows)


def test_loading_twice_changes_no_byte(one_run: tuple[Path, Path]) -> None:
    data, _run = one_run
    assert load_night(data, NIGHT).changed
    before = _hashes(data)

    again = load_night(data, NIGHT)

    assert not again.changed
    assert _hashes(data) == before


def test_a_rebuild_gives_the_same_bytes_and_removes_what_is_named(one_run: tuple[Path, Path]) -> None:
    data, _run = one_run
    whole_night(data, "2026-03-02", {"other": Shape(gap_ms=6.0)})
    loaded_nights: list[str] = []
    for night in (NIGHT, "2026-03-02"):
        load_night(data, night)
    before = _hashes(data)
    orphan = data / "lake" / "measurements" / "night=gone"
    orphan.mkdir()
    (data / "lake" / "findings" / f"night={NIGHT}" / "part-0.parquet").unlink()

    summaries = rebuild(data, loaded_nights.append, prune=[NIGHT, "gone"])

    assert loaded_nights == [NIGHT, "2026-03-02"]
    assert _hashes(data) == before
    assert not orphan.exists()
    assert [summary.changed for summary in summaries] == [(f"findings/night={NIGHT}/part-0.parquet",), ()]


def test_a_rebuild_with_nothing_to_load_is_refused_and_removes_nothing(tmp_path: Path) -> None:
    loaded = tmp_path / "lake" / "measurements" / f"night={NIGHT}" / "rows"
    write_text(loaded, "the last copy")

    with pytest.raises(UsageError, match=r"no nights in .*runs .* nothing to load into .*lake, and nothing"):
        rebuild(tmp_path, prune=not_here(tmp_path))

    assert loaded.read_text() == "the last copy"


def test_a_night_that_only_the_lake_has_stays_and_the_next_is_compared_with_it(tmp_path: Path) -> None:
    for night in (NIGHT, "2026-03-02"):
        whole_night(tmp_path, night)
        load_night(tmp_path, night)
    before = _hashes(tmp_path)
    shutil.rmtree(tmp_path / "runs" / NIGHT)

    rebuild(tmp_path)

    assert _hashes(tmp_path) == before
    assert not_here(tmp_path) == [NIGHT]


def _drop_events(run: Path) -> None:
    (run / "load" / "events.bin").unlink()


def _truncate_events(run: Path) -> None:
    content = (run / "load" / "events.bin").read_bytes()
    (run / "load" / "events.bin").write_bytes(content[:-4])


def _drop_manifest(run: Path) -> None:
    (run / "MANIFEST.sha256").unlink()


def _break_record(run: Path) -> None:
    (run / "record.json").write_text("{")
    seal(run)


def _break_requests(run: Path) -> None:
    (run / "load" / "requests.jsonl").write_text('{"index": 0')
    seal(run)


def _break_server_samples(run: Path) -> None:
    (run / "server-samples.parquet").write_text("not parquet")


def _break_telemetry(run: Path) -> None:
    (run / "telemetry.parquet").write_text("not parquet")
    seal(run)


def _shorten_events(run: Path) -> None:
    _truncate_events(run)
    seal(run)


def _lie_about_the_place(run: Path) -> None:
    record = json.loads((run / "record.json").read_text())
    (run / "record.json").write_text(json.dumps(record | {"repeat": 5}))
    seal(run)


@pytest.mark.parametrize(
    ("spoil", "named"),
    [
        (_drop_events, "load/events.bin"),
        (_truncate_events, "load/events.bin"),
        (_drop_manifest, "MANIFEST.sha256"),
        (_break_record, "record.json"),
        (_break_requests, "meter's report"),
        (_break_telemetry, "telemetry.parquet"),
        (_break_server_samples, "server-samples.parquet"),
        (_shorten_events, "events.bin"),
        (_lie_about_the_place, "record.json"),
    ],
)
def test_a_spoiled_run_folder_is_a_failed_row_that_names_folder_and_file(
    one_run: tuple[Path, Path], spoil: Callable[[Path], None], named: str
) -> None:
    data, run = one_run
    spoil(run)

    summary = load_night(data, NIGHT)

    row = run_sql(data, "SELECT * FROM measurements").dicts()[0]
    assert (row["outcome"], row["stage"], row["verdict"], row["scenario"]) == ("failed", "load", "failed", "chat")
    assert f"runs/{row['run_id']}: " in row["reason"]
    assert named in row["reason"]
    assert summary.warnings == (row["reason"],)
    assert run_sql(data, "SELECT count(*) FROM requests").rows == ((0,),)


def test_a_folder_that_starts_with_a_dot_is_not_a_run(one_run: tuple[Path, Path]) -> None:
    data, run = one_run
    run.rename(run.with_name(".0.partial"))

    summary = load_night(data, NIGHT)

    assert (summary.verdicts, summary.warnings) == ({"not-run": 1}, ())


def test_a_folder_that_is_no_repeat_is_left_out_and_named(one_run: tuple[Path, Path]) -> None:
    data, run = one_run
    run.with_name("copy").mkdir()

    summary = load_night(data, NIGHT)

    assert summary.verdicts == {"accepted": 1}
    assert "copy: the folder name is not a repeat number" in summary.warnings[0]


def test_a_night_without_its_plan_or_lease_is_loaded_with_warnings(one_run: tuple[Path, Path]) -> None:
    data, _run = one_run
    (data / "runs" / NIGHT / "night.json").write_text("{")
    (data / "runs" / NIGHT / "leases" / "lease-1.json").write_text("{}")

    summary = load_night(data, NIGHT)

    assert summary.verdicts == {"accepted": 1}
    assert ["night.json" in summary.warnings[0], "leases/lease-1.json" in summary.warnings[1]] == [True, True]


def test_a_night_of_nothing_but_unstarted_runs_never_validates(tmp_path: Path) -> None:
    write_night(tmp_path, NIGHT, {"chat": Shape()})

    summary = load_night(tmp_path, NIGHT)

    validation = json.loads((tmp_path / "lake" / "validation" / f"night={NIGHT}" / "validation.json").read_text())
    assert summary.verdicts == {"not-run": 1}
    assert validation["success"] is False


@pytest.mark.parametrize("night", ["2099-01-01", "../runs", "", ".hidden"])
def test_a_night_that_is_not_there_is_a_usage_error(one_run: tuple[Path, Path], night: str) -> None:
    with pytest.raises(UsageError, match=f"no night .*{NIGHT}"):
        load_night(one_run[0], night)


def test_a_lake_that_cannot_be_written_is_named_and_nothing_changes(one_run: tuple[Path, Path]) -> None:
    data, _run = one_run
    (data / "lake").write_text("in the way")

    with pytest.raises(LoadIntoWarehouseError, match=r"lake could not be written: File exists.*load again"):
        load_night(data, NIGHT)


# No file may grow beyond 50 kB: a full disk, as far as the loader can tell.
SMALL_DISK = """
import resource, signal, sys
from pathlib import Path
from bench.errors import LoadIntoWarehouseError
from warehouse.judging.validation import imported_meanwhile
from warehouse.load import load_night
with imported_meanwhile():
    pass
print("imported after:", "great_expectations" in sys.modules, "scipy.stats._stats_py" in sys.modules)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
try:
    load_night(Path(sys.argv[1]), sys.argv[2])
except LoadIntoWarehouseError as error:
    print(error)
"""


def test_a_disk_that_fills_up_leaves_the_lake_as_it_was(one_run: tuple[Path, Path]) -> None:
    data, _run = one_run
    load_night(data, NIGHT)
    before = _hashes(data)
    whole_night(data, "2026-03-02", {"big": Shape(requests=2000, tokens=50, jitter=0.5)})

    done = subprocess.run(
        [sys.executable, "-c", SMALL_DISK, str(data), "2026-03-02"], check=False, capture_output=True, text=True
    )

    # It takes seconds, so a night does it while its server stops, and without what only few expectations use.
    assert "imported after: True False" in done.stdout
    assert "could not be written: File too large" in done.stdout
    assert _hashes(data) == before


def test_a_night_has_data_docs_that_load_nothing_from_elsewhere(loaded: tuple[Path, LoadSummary]) -> None:
    page = (loaded[0] / "lake" / "validation" / f"night={NIGHT}" / "data-docs.html").read_text(encoding="utf-8")

    assert "requests: ttft_ms" in page
    assert "values must be greater than or equal to" in page
    assert re.findall(r"<(?:script|link|img)[^>]*(?:src|href)\s*=[^>]*//[^>]*>", page) == []
