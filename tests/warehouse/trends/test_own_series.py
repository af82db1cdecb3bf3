"""Our own accepted nights are series that new versions and hosts do not end."""

from pathlib import Path

import pytest

from bench.suite.suite import BISECT
from tests.warehouse.folders import QUIET, Shape, Told, whole_night, write_night, write_run
from warehouse.lake.query import run_sql
from warehouse.load import load_night
from warehouse.trends.find import find_trends
from warehouse.trends.own_series import own_series, with_failed_nights


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("own")
    for night in ("2026-03-01T010000Z", "2026-03-02T010000Z"):
        whole_night(folder, night)
        load_night(folder, night)
    return folder


def test_two_nights_of_a_scenario_are_one_series_of_each_metric(data: Path) -> None:
    found = list(own_series(data))

    assert found
    assert {point.night for series in found for point in series.points} == {"2026-03-01T010000Z", "2026-03-02T010000Z"}
    assert {len(series.points) for series in found} == {2}


def test_only_the_newest_nights_are_read_if_so_many_are_asked_for(data: Path) -> None:
    assert {point.night for series in own_series(data, 1) for point in series.points} == {"2026-03-02T010000Z"}


def test_a_night_carries_what_explains_it(data: Path) -> None:
    series = next(one for one in own_series(data) if one.key.metric == "output_throughput_tok_per_s")

    assert series.is_lower_better is False
    assert {"host", "engine_version", "client_version", "arrivals", "repeats", "workload", "method_version"} <= set(
        series.points[0].stack
    )


def test_what_a_suite_declares_as_identity_is_part_of_the_name(tmp_path: Path) -> None:
    for night, driver in (("2026-03-01", "570.1"), ("2026-03-02", "580.2"), ("2026-03-03", "580.2")):
        planned = write_night(tmp_path, night, {"chat": Shape()})
        declared = planned.suite.model_copy(update={"series_identity": ("driver", "model_revision")})
        planned = planned.model_copy(update={"suite": declared})
        write_run(tmp_path, planned, planned.runs[0], Shape(), Told(host={"gpu_driver": driver}))
        load_night(tmp_path, night)

    found = [one for one in own_series(tmp_path) if one.key.metric == "tpot_p50_ms"]

    names = {one.key.series.partition("meter/")[2]: len(one.points) for one in found}
    assert names == {"driver=570.1/model_revision=r1": 1, "driver=580.2/model_revision=r1": 2}


def test_a_night_of_a_bisect_is_in_no_series_of_the_other_nights(tmp_path: Path) -> None:
    for night, identity in (("2026-03-01", ()), ("2026-03-02", ("driver", BISECT))):
        planned = write_night(tmp_path, night, {"chat": Shape()})
        declared = planned.suite.model_copy(update={"series_identity": identity})
        write_run(tmp_path, planned.model_copy(update={"suite": declared}), planned.runs[0], Shape())
        load_night(tmp_path, night)

    ours, searched = (list(own_series(tmp_path, of_bisects=of)) for of in (False, True))

    assert {point.night for one in ours for point in one.points} == {"2026-03-01"}
    assert {point.night for one in searched for point in one.points} == {"2026-03-02"}
    assert all(one.key.series.endswith("/driver=570.1/bisect") for one in searched)


def test_two_nights_are_too_few_to_judge_and_the_count_says_so(data: Path) -> None:
    found = find_trends(data)

    assert found.changes == ()
    assert found.too_short_count == found.series_count > 0


def test_a_night_without_an_accepted_run_of_a_scenario_is_an_invalid_one_of_its_series(tmp_path: Path) -> None:
    shapes = {"chat": Shape(), "long": Shape(requests=96)}
    whole_night(tmp_path, "2026-03-01", shapes)
    planned = write_night(tmp_path, "2026-03-02", shapes)
    write_run(tmp_path, planned, next(run for run in planned.runs if run.scenario.name == "chat"), Shape())
    for night in ("2026-03-01", "2026-03-02"):
        load_night(tmp_path, night)

    found = list(with_failed_nights(tmp_path, own_series(tmp_path)))

    nights = {
        name: {(point.night, point.is_valid) for one in found if f"/{name}/" in one.key.series for point in one.points}
        for name in shapes
    }
    assert nights["chat"] == {("2026-03-01", True), ("2026-03-02", True)}
    assert nights["long"] == {("2026-03-01", True), ("2026-03-02", False)}


def test_a_busy_host_weakens_a_night_and_a_doubted_number_leaves_it_out(tmp_path: Path) -> None:
    busy = Told(host_use=QUIET.model_copy(update={"other_cpu_share": 0.3}))
    for night, shape, told in (
        ("2026-03-01", Shape(), Told()),
        ("2026-03-02", Shape(gap_ms=6.0), busy),
        ("2026-03-03", Shape(concurrency=1), busy),
    ):
        planned = write_night(tmp_path, night, {"chat": Shape()})
        write_run(tmp_path, planned, planned.runs[0], shape, told)
        load_night(tmp_path, night)

    series = next(one for one in own_series(tmp_path) if one.key.metric == "tpot_p50_ms")

    verdicts = run_sql(tmp_path, "SELECT verdict, is_only_noisy FROM measurements ORDER BY night").rows
    assert verdicts == (("accepted", False), ("suspect", True), ("suspect", False))
    assert [(point.night, point.standard_error) for point in series.points] == [
        ("2026-03-01", None),
        ("2026-03-02", pytest.approx(0.3, abs=0.01)),
    ]
