"""A history of releases: its order is drawn and kept, each night becomes a row, and a stop loses none."""

import csv
import re
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench.errors import BadRunsError, ServerStartError
from benchmarks.history.collect import build_all, collect, missing_nights, write_suite
from benchmarks.history.export import _without_names, export
from benchmarks.history.journal import Row, keep_row, read_journal
from benchmarks.history.plan import SUITES, PlannedNight, known_releases, planned
from infra.loadgen.suite_file import make_night, read_suite
from infra.settings import Settings
from infra.storage import store
from warehouse.demo.story import story
from warehouse.demo.write import _write_nights

AT = datetime(2026, 8, 3, tzinfo=UTC)
RELEASES = {"vllm": ["0.30.0", "0.31.0", "0.32.0"], "llama.cpp": ["b1000", "b2000"]}
NIGHTS = [PlannedNight(0, "vllm", release) for release in RELEASES["vllm"]]


class Flow:
    """Runs nights: each is planned for real and then ends as it is told."""

    def __init__(self, data: Path, *, ends: dict[str, Exception | type[BaseException]] | None = None) -> None:
        self.data, self.ends, self.resumed = data, ends or {}, list[str | None]()

    def __call__(self, suite: Path, begun: str | None) -> str:
        self.resumed.append(begun)
        name = begun or f"2026-03-{len(self.resumed):02}T010000Z"
        night = make_night(suite, "local", poc=False, is_draft=True).model_copy(update={"night": name})
        store.write_json(store.night_file(self.data, name), night)
        if (end := self.ends.pop(night.suite.engine.version, None)) is not None:
            raise end
        return name


def measure(data: Path, flow: Flow, unbuilt: dict[str, str] | None = None) -> None:
    collect(data, missing_nights(data, NIGHTS), unbuilt or {}, flow, lambda _line: None)


def test_every_round_has_each_release_once_and_the_newest_of_each_engine_twice() -> None:
    nights = planned(4, RELEASES)

    for at in range(4):
        assert Counter((one.release, one.is_aa) for one in nights if one.round == at) == Counter(
            [(release, False) for each in RELEASES.values() for release in each] + [("0.32.0", True), ("b2000", True)]
        )


def test_the_order_is_drawn_for_each_round_and_is_that_of_a_shorter_history_as_far_as_it_goes() -> None:
    nights = planned(4, RELEASES)
    orders = {tuple(one.release for one in nights if one.round == at) for at in range(4)}

    assert len(orders) == 4
    assert planned(2, RELEASES) == nights[: len(nights) // 2]
    assert planned(4, RELEASES, seed=1) != nights


def test_one_engine_alone_has_its_part_of_the_nights(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "benchmarks.history", "2", "--data", str(tmp_path), "--most", "0", "--build-only"]
    counts = {}
    for engine in (None, *SUITES):
        own = [*argv, *(["--engine", engine] if engine else [])]
        told = subprocess.run(own, capture_output=True, text=True, check=True)
        counts[engine] = int(re.findall(r"0 of (\d+) nights are measured", told.stdout + told.stderr)[0])

    assert counts == {
        engine: sum(engine in {None, one.engine} for one in planned(2, known_releases())) for engine in counts
    }
    assert len(set(counts.values())) == 3


def test_each_release_of_the_checkout_has_a_suite_that_names_it(tmp_path: Path) -> None:
    for one in planned(1, known_releases()):
        suite, _digest = read_suite(write_suite(tmp_path, one), is_draft=True, target="local")
        of_engine, _digest = read_suite(SUITES[one.engine], is_draft=True, target="local")
        same = of_engine.engine.model_copy(update={"version": one.release})
        assert suite == of_engine.model_copy(update={"engine": same})


def test_a_stopped_history_resumes_the_night_that_was_cut_off(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        measure(tmp_path, Flow(tmp_path, ends={"0.31.0": KeyboardInterrupt}))
    assert [row.release for row in read_journal(tmp_path).rows] == ["0.30.0"]

    again = Flow(tmp_path)
    measure(tmp_path, again)

    assert again.resumed == ["2026-03-02T010000Z", None]
    assert [row.planned for row in read_journal(tmp_path).rows] == NIGHTS
    assert missing_nights(tmp_path, NIGHTS) == []


def test_a_night_that_fails_stays_as_a_row_with_its_reason_and_the_others_go_on(tmp_path: Path) -> None:
    bad = BadRunsError("2026-03-01T010000Z", {"rejected": 2})
    ends: dict[str, Exception | type[BaseException]] = {"0.30.0": bad, "0.31.0": ServerStartError("no port was free")}
    measure(tmp_path, Flow(tmp_path, ends=ends))

    rows = {row.release: row for row in read_journal(tmp_path).rows}
    assert rows["0.30.0"].reason == str(bad)
    assert (rows["0.31.0"].night, rows["0.31.0"].reason) == ("2026-03-02T010000Z", "no port was free")
    assert rows["0.32.0"].reason == ""


def test_a_release_that_cannot_be_built_is_said_and_measures_nothing(tmp_path: Path) -> None:
    said: list[str] = []
    unknown = [PlannedNight(0, "vllm", "0.1.2"), PlannedNight(0, "llama.cpp", "b100")]
    settings = Settings(vllm_executable=None, llama_server=None)
    failed = build_all(unknown, settings, said.append)
    flow = Flow(tmp_path)
    collect(tmp_path, unknown, failed, flow, said.append)

    assert flow.resumed == []
    assert [(row.night, row.reason) for row in read_journal(tmp_path).rows] == [(None, why) for why in failed.values()]
    assert "no environment can be built for vLLM 0.1.2" in said[0]
    assert "no environment can be built for llama.cpp b100" in said[1]


def test_the_data_set_has_the_nights_of_the_journal_with_their_host_and_commits(tmp_path: Path) -> None:
    data, folder = tmp_path / "data", tmp_path / "set"
    simulated = list(story())[:4]
    _write_nights(data, simulated)
    nights = [night.name for night in simulated]
    for at in (3, 2, 0):
        row = Row(
            round=at,
            engine="vllm",
            release="0.31.0",
            is_aa=at == 3,
            night=nights[at],
            began_at=AT,
            wall_s=60.0,
            commit="0ff",
        )
        keep_row(data, row)

    size = export(data, folder)

    measured = pq.read_table(folder / "measurements.parquet")
    assert set(measured["night"].to_pylist()) == {nights[at] for at in (0, 2, 3)}
    assert set(measured["kernel"].to_pylist()) <= {None}
    assert [row["night"] for row in csv.DictReader((folder / "nights.csv").open())] == [nights[at] for at in (3, 2, 0)]
    page = (folder / "README.md").read_text()
    assert "`0ff`" in page
    assert "`make history NIGHTS=3` wrote this folder" in page  # rounds 3, 2 and 0
    assert size == sum(path.stat().st_size for path in folder.iterdir())


def test_the_data_set_names_no_folder_and_no_other_program_of_the_host() -> None:
    said = ["there is no /cache/nightbench/engines/b1/python", "busiest: python3 12 %; 3 cores", None]

    shown = _without_names(pa.table({"reason": said}))

    assert shown["reason"].to_pylist() == ["there is no b1/python", "3 cores", None]
