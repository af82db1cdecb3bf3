"""What is said of an imported history is kept: later imports add to it, and a rebuild reads it back."""

import csv
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from bench.errors import UnreadableResultError, UsageError
from flows.cli import app
from tests.warehouse.folders import whole_night
from tests.warehouse.test_histories import PLAIN
from tests.warehouse.trends.judgements import EVENT, write_judgement
from warehouse.histories import import_history, judge_imported, partition_of
from warehouse.lake.query import run_sql
from warehouse.load import load_night
from warehouse.rebuild import not_here, rebuild
from warehouse.schema.columns import COLUMNS
from warehouse.trends.kept import history_file

NIGHT = "2026-03-01T010000Z"
START = datetime(2026, 3, 1, 2, tzinfo=UTC)
CHANGES = "SELECT series, first_bad, state, event_series FROM changes ORDER BY ALL"
VERDICTS = "SELECT series, judgement, baseline_nights, night FROM series_verdicts ORDER BY ALL"


def add(data: Path, name: str, days: range, *, drop_at: int = 999) -> str:
    """Import the days of a history of two series; returns the hash of its file."""
    path = data / name
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["timestamp", "series", "metric", "unit", "value", "engine_version", "source_repo"])
        for seed in (0, 1):
            noise = np.random.default_rng(seed).normal(0, 0.005, 100)
            for day in days:
                moment = (START + timedelta(days=day)).isoformat()
                value = 1000 * np.exp(noise[day]) * (0.9 if day >= drop_at else 1)
                version = "2" if day >= drop_at else "1"
                rows.writerow([moment, f"m/{seed}", "throughput", "tok/s", value, version, "us"])
    sha256 = import_history(data, path, PLAIN).sha256
    judge_imported(data, [sha256])
    return sha256


@pytest.fixture
def data(tmp_path: Path) -> Path:
    add(tmp_path, "a.csv", range(30), drop_at=20)
    return tmp_path


def test_a_change_is_said_with_its_event_and_the_newest_night_is_judged(data: Path) -> None:
    changes = run_sql(data, CHANGES).rows

    assert [(name, state, count) for name, _, state, count in changes] == [
        ("m/0", "confirmed", 2),
        ("m/1", "confirmed", 2),
    ]
    assert {row[1:3] for row in run_sql(data, VERDICTS).rows} == {("equivalent", 9)}


def test_a_later_file_adds_and_takes_nothing_back(data: Path) -> None:
    before = run_sql(data, CHANGES).rows
    later = add(data, "b.csv", range(30, 60), drop_at=20)

    assert run_sql(data, CHANGES).rows == before
    newest = [row for row in run_sql(data, VERDICTS).rows if row[3] == partition_of(later)]
    assert {row[2] for row in newest} == {30}


def test_the_same_file_again_changes_nothing(data: Path) -> None:
    before = run_sql(data, CHANGES).rows, run_sql(data, VERDICTS).rows
    add(data, "a.csv", range(30), drop_at=20)

    assert (run_sql(data, CHANGES).rows, run_sql(data, VERDICTS).rows) == before


def test_a_rebuild_reads_what_was_said(data: Path) -> None:
    before = run_sql(data, CHANGES).rows, run_sql(data, VERDICTS).rows
    shutil.rmtree(data / "lake")
    rebuild(data)

    assert (run_sql(data, CHANGES).rows, run_sql(data, VERDICTS).rows) == before


def test_a_broken_file_of_what_was_said_is_named(data: Path) -> None:
    file = history_file(data, partition_of(add(data, "c.csv", range(12))))
    file.write_text("{}")

    with pytest.raises(UnreadableResultError, match=rf"{file.name}: it cannot be read: night: .*; move it away"):
        rebuild(data)


def test_a_rebuild_keeps_the_histories_of_others_and_their_judgements(data: Path) -> None:
    before = run_sql(data, CHANGES).rows, run_sql(data, VERDICTS).rows
    other = data / "other"
    shutil.copytree(data / "lake", other / "lake")
    whole_night(other, NIGHT)

    rebuild(other)

    assert run_sql(other, CHANGES).rows == before[0]
    assert run_sql(other, VERDICTS).rows == before[1]
    assert not_here(other) == [partition_of(sha256) for sha256 in _kept(data)]
    rebuild(other, prune=not_here(other))
    assert run_sql(other, "SELECT count(*) FROM history_points").rows == ((0,),)


def _kept(data: Path) -> list[str]:
    return [path.name for path in (data / "imports").iterdir() if not path.name.startswith(".")]


def test_a_history_imported_on_another_computer_keeps_what_was_said_of_it(data: Path) -> None:
    before = run_sql(data, CHANGES).rows, run_sql(data, VERDICTS).rows
    other = data / "other"
    shutil.copytree(data / "lake", other / "lake")

    import_history(other, data / "a.csv", PLAIN)

    assert (run_sql(other, CHANGES).rows, run_sql(other, VERDICTS).rows) == before


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with a night of which something was said."""
    data = tmp_path_factory.mktemp("night")
    whole_night(data, NIGHT)
    write_judgement(data, NIGHT)
    load_night(data, NIGHT)
    return data


def acknowledged(night: Path, *words: str) -> Result:
    return CliRunner().invoke(app, ["--data", str(night), "acknowledge", *words])


def test_an_acknowledged_event_has_its_note_and_its_state_and_what_was_said_stays(night: Path) -> None:
    said = acknowledged(night, EVENT, "--state", "explained", "--note", "a new driver", "--by", "lee")

    assert said.stdout == f"event {EVENT}, 1 series: explained; a new driver\n"
    columns = "state, said_state, note, acknowledged_by"
    assert run_sql(night, f"SELECT {columns} FROM changes").rows == (("explained", "confirmed", "a new driver", "lee"),)
    acknowledged(night, EVENT, "--note", "seen again", "--by", "kim")
    assert run_sql(night, f"SELECT {columns} FROM changes").rows == (("explained", "confirmed", "seen again", "kim"),)


def test_a_computer_that_acknowledges_keeps_the_acknowledgements_of_others(night: Path, tmp_path: Path) -> None:
    acknowledged(night, EVENT, "--note", "ours", "--by", "lee")
    for folder in ("lake", "runs"):
        shutil.copytree(night / folder, tmp_path / folder)
    notes = "SELECT count(*), max_by(note, acknowledged_at) FROM acknowledgements"
    (count, _note) = run_sql(night, notes).rows[0]

    acknowledged(tmp_path, EVENT, "--note", "theirs", "--by", "kim")
    rebuild(tmp_path)

    assert run_sql(tmp_path, notes).rows == ((count + 1, "theirs"),)
    assert not_here(tmp_path) == ["acknowledged"]
    rebuild(tmp_path, prune=not_here(tmp_path))
    assert run_sql(tmp_path, notes).rows == ((1, "theirs"),)


def test_every_declared_column_is_written(night: Path) -> None:
    acknowledged(night, EVENT, "--state", "host", "--note", "a slow host")
    for table in ("series_verdicts", "change_points", "acknowledgements"):
        counted = ", ".join(f'count("{column.name}") AS "{column.name}"' for column in COLUMNS[table])
        (found,) = run_sql(night, f"SELECT {counted} FROM {table}").dicts()
        assert [name for name, count in found.items() if not count] == []


def test_an_unknown_event_is_refused(night: Path) -> None:
    error = acknowledged(night, "nothing", "--note", "x").exception

    assert isinstance(error, UsageError)
    assert str(error).startswith("no event 'nothing': `nightbench trends` lists")


def test_a_night_lists_what_was_said_of_its_series(night: Path) -> None:
    said = CliRunner().invoke(app, ["--data", str(night), "trends", "--night", NIGHT])

    assert "1 series: 1 confirmed" in said.stdout.splitlines()
    other = CliRunner().invoke(app, ["--data", str(night), "trends", "--night", "2026-01-01T010000Z"])
    assert f"the latest judged nights: {NIGHT}" in str(other.exception)
