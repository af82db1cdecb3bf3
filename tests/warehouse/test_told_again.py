"""A run that several files of a folder tell is one claim."""

import json
from pathlib import Path
from shutil import copy

import pytest

from bench.errors import UnknownFormatError, UnreadableResultError
from tests.data.formats.vllm_serve.make import detailed, plain, short_run
from tests.data.formats.vllm_sweep.make import files as sweep_files
from tests.data.formats.vllm_sweep.make import runs
from tests.warehouse.importers.reading import FORMATS, claims_of
from warehouse.audit import AuditOptions, audit

UNKNOWN_LINES = '{"event": "start", "at": 1}\n{"event": "end", "at": 2}\n'


def test_a_sweep_tells_each_run_once(tmp_path: Path) -> None:
    rows = runs(11, 12)
    (tmp_path / "summary.json").write_text(json.dumps(rows))
    (tmp_path / "summary.csv").write_text(sweep_files()["summary.csv"])
    folder = tmp_path / "BENCH--max_concurrency=2"
    folder.mkdir()
    (folder / "run=0.json").write_text(json.dumps({**rows[0], **detailed(short_run(11))}))

    found = audit([str(tmp_path)], AuditOptions())

    # Two runs of summary.json, of which one has a file with its requests, and the two others of summary.csv.
    places = [(Path(each.claim.lineage.file).name, each.claim.lineage.place) for each in found.judged]
    assert sorted(places) == [
        ("run=0.json", ""),
        ("summary.csv", "line 2"),
        ("summary.csv", "line 3"),
        ("summary.json", "[1]"),
    ]
    (why,) = found.left_out
    assert "summary.json [0] tells the run of" in why
    assert why.endswith("run=0.json")


def test_a_copy_and_another_run_are_claims_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(plain(short_run(1))))
    copy(tmp_path / "a.json", tmp_path / "b.json")
    (tmp_path / "c.json").write_text(json.dumps(plain(short_run(2))))

    found = audit([str(tmp_path)], AuditOptions())

    assert len(found.judged) == 3
    assert found.left_out == ()
    assert ["stale_copy" in {finding.code for finding in each.findings} for each in found.judged] == [True, True, False]


def test_lines_of_no_known_format_are_unknown_and_not_cut_off() -> None:
    with pytest.raises(UnknownFormatError, match="no known format"):
        claims_of("events.jsonl", UNKNOWN_LINES)
    with pytest.raises(UnreadableResultError, match="line 2"):
        claims_of("events.jsonl", UNKNOWN_LINES[:-9])


def test_a_context_file_that_is_used_is_not_left_out(tmp_path: Path) -> None:
    copy(FORMATS / "vllm_serve/older.json", tmp_path / "older.json")
    (tmp_path / "context.toml").write_text('gpu = "MI300X"\n')

    found = audit([str(tmp_path)], AuditOptions())

    assert found.left_out == ()
    assert [each.claim.asked.gpu for each in found.judged] == ["MI300X"]
