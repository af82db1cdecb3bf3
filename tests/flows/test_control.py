"""The control of a suite: it runs once on each lease, its row is marked, and no result includes it."""

import tomllib
from uuid import uuid4

import pytest

from bench.record import NightRecord, RunRecord
from bench.suite.control import Control
from flows.nightly import benchmark_machine
from infra.loadgen.suite_file import make_night
from infra.settings import Settings
from infra.storage import store
from tasks.control import control_run
from tests.flows.conftest import NightFixture
from warehouse.exporters import read_measurements
from warehouse.lake.query import run_sql
from warehouse.load import load_night
from warehouse.report.page import write_report

pytestmark = pytest.mark.usefixtures("calibrated", "nights_without_prefect")

CONTROL = """
[control]
timeout_s = 50
[control.model]
name = "frozen"
source = "generated:tiny?seed=1"
[control.engine]
version = "0.32.0"
max_model_len = 4096
flags = ["--no-enable-prefix-caching", "--enable-per-request-metrics"]
environment = { TRUTH_FAULT = "%s", TRUTH_ITL_MS = "5" }
[control.workload]
isl = 16
osl = 8
concurrency = 1
request_count = 12
warmup_count = 1
"""


def _night(house: NightFixture, control: str) -> NightRecord:
    house.write_suite()
    house.suite.write_text(house.suite.read_text() + control)
    night = make_night(house.suite, "local", poc=True)
    store.write_json(store.night_file(house.data, night.night), night)
    return night


def _control(fault: str) -> Control:
    return Control.model_validate(tomllib.loads(CONTROL % fault)["control"])


def _ask(house: NightFixture, sql: str) -> list[tuple[object, ...]]:
    return list(run_sql(house.data, sql).rows)


def test_a_control_is_a_marked_row_beside_the_results_and_in_none_of_them(house: NightFixture) -> None:
    night = _night(house, CONTROL % "")

    benchmark_machine(night, uuid4())
    load_night(house.data, night.night)

    marked = _ask(house, "SELECT scenario, is_control, outcome, model FROM measurements ORDER BY is_control")
    assert marked == [("one", False, "measured", "tiny"), ("control", True, "measured", "frozen")]
    assert _ask(house, "SELECT scenario FROM results") == [("one",)]
    assert _ask(house, "SELECT count(*) FROM accepted WHERE is_control") == [(0,)]
    (control,) = _ask(house, "SELECT exp(log_output_throughput) / output_throughput_tok_per_s FROM controls")
    assert control == (pytest.approx(1.0),)
    assert {row["scenario"] for row in read_measurements(house.data, (), accepted_only=False)} == {"one"}
    assert ">Control<" in write_report(house.data, night.night).read_text()
    stages = _ask(house, "SELECT stage FROM stages WHERE stage = 'control' AND usd IS NOT NULL")
    assert stages == [("control",)] * 2  # its engine and model, and its load; its server is a stage "serve"
    again = control_run(Settings(), night)
    assert house.leftovers() == []
    assert again is not None
    assert (again.repeat, again.scenario.is_control) == (1, True)  # on another lease of the same night


def test_a_control_that_cannot_be_run_ends_nothing_and_one_that_does_not_start_is_a_failed_row(
    house: NightFixture,
) -> None:
    nowhere = (CONTROL % "").replace("generated:tiny?seed=1", "path:/nowhere")
    night = _night(house, nowhere)
    benchmark_machine(night, uuid4())
    assert store.missing_runs(house.data, night) == []

    suite = night.suite.model_copy(update={"control": _control("oom_at_start")})
    night = night.model_copy(update={"suite": suite})
    store.write_json(store.night_file(house.data, night.night), night)
    benchmark_machine(night, uuid4())

    (record,) = (
        record
        for path in store.night_folder(house.data, night.night).glob("*/0/record.json")
        for record in [RunRecord.model_validate_json(path.read_bytes())]
        if record.asked.is_control
    )
    assert (record.outcome, record.stage) == ("failed", "server")
    assert house.leftovers() == []
