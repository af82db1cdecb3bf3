"""A night with a suspect scenario measures it again: once, as a night of its own, within the budget."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from bench.record import NightRecord, PlannedRun
from bench.rerun import budget_left, rerun_of
from flows.nightly import run_night
from infra.settings import Settings
from infra.storage import store
from tests.warehouse.folders import STARTED, Shape, suite, whole_night, write_night, write_run
from warehouse.lake.query import run_sql
from warehouse.load import load_night

USUAL, SLOW = Shape(gap_ms=5.0), Shape(gap_ms=6.0)
CALM = Shape(tokens=16)
FIRST, TONIGHT = "2026-03-01", "2026-03-20"
SAID = "SELECT night, judged_night, judgement FROM series_verdicts WHERE metric = 'tpot_p50_ms' ORDER BY ALL"
CHANGES = "SELECT first_bad, state, until FROM changes WHERE metric = 'tpot_p50_ms'"


class Machines:
    """Stands for every machine: it writes the run folders of a night at once, each scenario at the speed it is told."""

    def __init__(self, data: Path, speeds: Sequence[Shape]) -> None:
        self.data, self.speeds, self.nights = data, list(speeds), list[NightRecord]()

    def measure(self, _settings: Settings, night: NightRecord, _progress: object, **_more: object) -> None:
        self.nights.append(night)
        speed = self.speeds.pop(0)
        for run in night.runs:
            write_run(self.data, night, run, speed if run.scenario.name == "chat" else CALM)


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A usual night, loaded, and the lake of eight more that are equal to it."""
    data = tmp_path_factory.mktemp("usual")
    whole_night(data, FIRST, {"chat": USUAL, "calm": CALM})
    load_night(data, FIRST)
    for table in (data / "lake").iterdir():
        for day in range(2, 10) if table.is_dir() else ():
            shutil.copytree(table / f"night={FIRST}", table / f"night=2026-03-0{day}")
    return data


@pytest.fixture
def data(usual: Path, tmp_path: Path) -> Path:
    return shutil.copytree(usual, tmp_path / "data")


@pytest.fixture(autouse=True)
def _nothing_shown(monkeypatch: pytest.MonkeyPatch, nights_without_prefect: None) -> None:
    """There is no Prefect to show anything, and the pages are tested elsewhere."""
    del nights_without_prefect
    for name in ("show_plan", "start_progress", "show_results", "report", "report_suite"):
        monkeypatch.setattr(f"flows.nightly.{name}", lambda *_: None)
    monkeypatch.setattr("flows.suspects.report", lambda *_: None)


def run(data: Path, monkeypatch: pytest.MonkeyPatch, *speeds: Shape, **suite_keys: object) -> Machines:
    """Run tonight, and what follows from it, on machines of these speeds."""
    monkeypatch.setenv("NIGHTBENCH_DATA", str(data))
    machines = Machines(data, speeds)
    monkeypatch.setattr("flows.nightly.try_machines", machines.measure)
    night = write_night(data, TONIGHT, {"chat": USUAL, "calm": CALM})
    night = night.model_copy(update={"suite": night.suite.model_copy(update=suite_keys)})
    store.write_json(store.night_file(data, TONIGHT), night)
    run_night(Settings(), night, data / "suite.toml", wait=False)
    return machines


def ask(data: Path, query: str) -> list[tuple[object, ...]]:
    return list(run_sql(data, query).rows)


def test_a_usual_night_is_not_measured_again(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machines = run(data, monkeypatch, USUAL)

    assert len(machines.nights) == 1
    assert ask(data, SAID) == [(TONIGHT, TONIGHT, "equivalent")] * 2
    assert ask(data, CHANGES) == []


def test_a_slow_scenario_is_measured_again_and_confirmed(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tonight, again = run(data, monkeypatch, SLOW, SLOW).nights

    assert again.rerun_of == tonight.night
    assert {one.scenario.name for one in again.runs} == {"chat"}
    assert (TONIGHT, TONIGHT, "suspect") in ask(data, SAID)
    assert (again.night, TONIGHT, "confirmed") in ask(data, SAID)
    assert ask(data, CHANGES) == [(TONIGHT, "confirmed", None)]


def test_a_slow_host_is_told_from_a_slow_engine(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, again = run(data, monkeypatch, SLOW, USUAL).nights

    assert (again.night, TONIGHT, "host outlier") in ask(data, SAID)
    assert ask(data, CHANGES) == [(TONIGHT, "host", TONIGHT)]


@pytest.mark.parametrize("keys", [{"rerun_suspects": False}, {"budget_usd": 1.5}])
def test_it_stays_suspect_where_the_suite_or_the_budget_says_so(
    data: Path, monkeypatch: pytest.MonkeyPatch, keys: dict[str, object]
) -> None:
    machines = run(data, monkeypatch, SLOW, **keys)

    assert len(machines.nights) == 1
    assert ask(data, CHANGES) == [(TONIGHT, "suspect", None)]


def test_a_night_is_measured_again_only_once(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(data, monkeypatch, SLOW, SLOW)
    run_night(Settings(), store.read_night(data, TONIGHT), data / "suite.toml", wait=False)

    assert len(store.nights(data)) == 3


def test_the_second_night_has_what_the_first_left_of_the_budget() -> None:
    planned = suite({"chat": USUAL, "calm": CALM}).model_copy(update={"budget_usd": 5.0})
    runs = tuple(PlannedRun(order=at, repeat=0, scenario=one) for at, one in enumerate(planned.expand()))
    ids = {one.name: one.scenario_id for one in planned.expand()}
    night = NightRecord(
        night="n", target="local", started_at=STARTED, suite=planned, suite_sha256="0", seed=1, runs=runs
    ).model_copy(update={"budget_shares": {"a": 3.0, "b": 2.0}})

    again = rerun_of(night, "m", STARTED, {ids["calm"]}, 3.0)

    assert again is not None
    assert again.suite.budget_usd == 2.0
    assert again.budget_shares == pytest.approx({"a": 1.2, "b": 0.8})
    assert [one.scenario.name for one in again.runs] == ["calm"]
    assert rerun_of(night, "m", STARTED, {ids["calm"]}, 5.0) is None
    assert rerun_of(night, "m", STARTED, {"another"}, 0.0) is None
    assert budget_left(suite({"chat": USUAL}), 9.0) is None
