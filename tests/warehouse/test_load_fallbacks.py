from pathlib import Path

from bench.engines.ladder import fallback_run
from bench.plan import on_kind
from bench.suite.ladder import Rung
from infra.storage import store
from tests.warehouse.folders import Shape, Told, write_night, write_run
from warehouse.lake.query import run_sql
from warehouse.load import load_night

NIGHT = "2026-03-01"
OUT_OF_MEMORY = Told("failed", "server", "No available memory for the cache blocks", "oom_kv")


def test_a_run_that_ran_out_of_memory_and_its_smaller_stand_in_are_two_scenarios(tmp_path: Path) -> None:
    shape = Shape()
    night = write_night(tmp_path, NIGHT, {"chat": shape})
    ladder = (Rung(max_num_seqs=8), Rung(max_num_seqs=4))
    night = night.model_copy(update={"suite": night.suite.model_copy(update={"ladder": ladder})})
    (asked,) = night.runs

    assert store.missing_runs(tmp_path, night) == [asked]
    write_run(tmp_path, night, asked, shape, OUT_OF_MEMORY)
    (first,) = store.missing_runs(tmp_path, night)
    write_run(tmp_path, night, first, shape, OUT_OF_MEMORY)
    (second,) = store.missing_runs(tmp_path, night)
    assert fallback_run(night, second) is None
    write_run(tmp_path, night, second, shape)
    assert store.missing_runs(tmp_path, night) == []

    load_night(tmp_path, NIGHT)
    rows = run_sql(
        tmp_path, 'SELECT scenario_id, fallback_of, rung, outcome, failure FROM measurements ORDER BY "order"'
    ).rows

    assert rows == (
        (asked.scenario.scenario_id, None, 0, "failed", "oom_kv"),
        (first.scenario.scenario_id, asked.scenario.scenario_id, 1, "failed", "oom_kv"),
        (second.scenario.scenario_id, asked.scenario.scenario_id, 2, "measured", None),
    )
    assert len({row[0] for row in rows}) == len(rows)


def test_the_next_rung_is_a_scenario_of_the_machine_that_the_night_has_by_then(tmp_path: Path) -> None:
    night = write_night(tmp_path, NIGHT, {"chat": Shape()})
    night = night.model_copy(update={"suite": night.suite.model_copy(update={"ladder": (Rung(max_num_seqs=8),)})})
    (asked,) = night.runs
    write_run(tmp_path, night, asked, Shape(), OUT_OF_MEMORY)

    moved = on_kind(night, "gpu-mi325x1-256gb", night.runs)
    (smaller,) = store.missing_runs(tmp_path, moved)

    assert smaller.scenario.machine.kind == "gpu-mi325x1-256gb"
    assert smaller.scenario.fallback_of == asked.scenario.scenario_id
    write_run(tmp_path, night, smaller, Shape())
    assert store.missing_runs(tmp_path, moved) == []


def test_a_rung_that_was_measured_on_an_earlier_machine_is_not_measured_again(tmp_path: Path) -> None:
    night = write_night(tmp_path, NIGHT, {"chat": Shape()})
    night = night.model_copy(update={"suite": night.suite.model_copy(update={"ladder": (Rung(max_num_seqs=8),)})})
    write_run(tmp_path, night, night.runs[0], Shape(), OUT_OF_MEMORY)
    (smaller,) = store.missing_runs(tmp_path, night)
    write_run(tmp_path, night, smaller, Shape())

    assert store.missing_runs(tmp_path, on_kind(night, "gpu-mi325x1-256gb", night.runs)) == []


def test_a_run_that_failed_for_another_reason_is_not_tried_again(tmp_path: Path) -> None:
    night = write_night(tmp_path, NIGHT, {"chat": Shape()})
    night = night.model_copy(update={"suite": night.suite.model_copy(update={"ladder": (Rung(max_num_seqs=8),)})})
    write_run(tmp_path, night, night.runs[0], Shape(), Told("failed", "server", "Memory access fault", "gpu_fault"))

    assert store.missing_runs(tmp_path, night) == []


def test_a_record_that_cannot_be_read_is_not_tried_again(tmp_path: Path) -> None:
    night = write_night(tmp_path, NIGHT, {"chat": Shape()})
    folder = write_run(tmp_path, night, night.runs[0], Shape(), OUT_OF_MEMORY)
    (folder / "record.json").write_text("[")

    assert store.missing_runs(tmp_path, night) == []
