"""A night's sweep and search: which run is missing follows from the run folders alone, whatever ended the night."""

import math
from dataclasses import replace
from pathlib import Path

import pytest

from bench.plan import on_kind, plan_runs
from bench.record import NightRecord, PlannedRun
from bench.search.search import NightSearches
from bench.suite.parse import parse_suite
from infra.storage import store
from tests.warehouse.folders import Shape, Told, write_night, write_run
from warehouse.lake.lake import write_rows
from warehouse.lake.query import run_sql
from warehouse.load import load_night
from warehouse.report.page import write_report
from warehouse.schema.columns import COLUMNS

NIGHT = "2026-03-01"
KNEE, CAPACITY_PER_S = 20, 8.0
SUITE = """\
name = "load"

[model]
name = "tiny"
source = "generated:tiny?seed=0"

[engine]
version = "0.32.0"
max_model_len = 4096

[[sweeps]]
name = "users"
isl = 16
osl = 8
concurrency_max = 128

[[searches]]
name = "chat"
isl = 16
osl = 8
arrivals = "constant"
request_count = 100
request_rate_per_s_min = 0.5
request_rate_per_s_max = 32.0
precision = 0.1
slo = { ttft_ms_max = 50.0 }
"""


@pytest.fixture
def night(tmp_path: Path) -> NightRecord:
    suite = parse_suite(SUITE, "load.toml")
    planned = write_night(tmp_path, NIGHT, {"chat": Shape()})
    night = planned.model_copy(update={"suite": suite, "runs": plan_runs(suite)})
    store.write_json(store.night_file(tmp_path, NIGHT), night)
    return night


def measured(data: Path, night: NightRecord, run: PlannedRun) -> None:
    """The run as a server gives it that slows down beyond KNEE streams, and keeps the SLO up to CAPACITY_PER_S."""
    work = run.scenario.workload
    shape = Shape(requests=work.request_count, tokens=8)
    if work.concurrency is not None:
        shape = replace(
            shape, concurrency=work.concurrency, gap_ms=5.0 * max(1.0, work.concurrency / KNEE), ttft_ms=1.0
        )
    else:
        is_held = (work.request_rate_per_s or 0) <= CAPACITY_PER_S
        shape = replace(shape, arrivals="constant", ttft_ms=20.0 if is_held else 90.0)
    write_run(data, night, run, shape)


def test_each_probe_follows_from_the_folders_of_those_before(tmp_path: Path, night: NightRecord) -> None:
    """Nothing is remembered between two looks, so a night that is resumed after any probe goes on with the next one."""
    count = 0
    while missing := store.missing_runs(tmp_path, store.read_night(tmp_path, NIGHT)):
        assert len(missing) <= 2, "one probe of each search at a time"
        measured(tmp_path, night, missing[0])
        count += 1
    assert count <= 24
    users, chat = store.search_results(tmp_path, night)
    assert users.value == pytest.approx(KNEE, rel=0.05)
    assert chat.value == pytest.approx(CAPACITY_PER_S, rel=0.11)
    assert len({one.probe.scenario_id for one in (*users.probes, *chat.probes)}) == count
    assert {one.status for one in chat.probes} == {"KEPT", "MISSED"}
    assert str(users).startswith("users #0: knee")


def test_a_night_is_loaded_with_its_searches_and_the_goodput_of_each_run(tmp_path: Path, night: NightRecord) -> None:
    while missing := store.missing_runs(tmp_path, night):
        measured(tmp_path, night, missing[0])
    found = NightSearches(searches=tuple(store.search_results(tmp_path, night)))
    store.write_json(store.searches_file(tmp_path, NIGHT), found)
    summary = load_night(tmp_path, NIGHT)
    assert summary.warnings == ()
    rows = run_sql(tmp_path, "SELECT search, kind, value, probes FROM searches").rows
    assert rows == tuple((one.search, one.kind, one.value, len(one.probes)) for one in reversed(found.searches))
    names = [column.name for column in COLUMNS["search_probes"] if column.name != "reason"]
    counts = run_sql(tmp_path, f"SELECT {', '.join(f'count({name})' for name in names)} FROM search_probes").rows[0]
    assert all(counts), dict(zip(names, counts, strict=True))
    kept = run_sql(
        tmp_path,
        "SELECT DISTINCT status, within_slo_share, goodput_per_s > 0, goodput_tok_per_s > 0 "
        "FROM search_probes JOIN measurements USING (night, scenario_id, repeat) WHERE kind = 'goodput' ORDER BY 1",
    ).rows
    assert kept == (("KEPT", 1.0, True, True), ("MISSED", 0.0, False, False))
    page = write_report(tmp_path, NIGHT).read_text("utf-8")
    assert "Sweeps and searches" in page
    assert found.searches[0].why in page


def test_repeats_of_a_search_are_pooled_with_students_interval_on_logarithms(tmp_path: Path) -> None:
    blank = dict.fromkeys(column.name for column in COLUMNS["search_probes"])
    found: dict[str, list[float | None]] = {"users": [8.0, 10.0, 12.5], "once": [30.0], "gap": [20.0, 20.0, None]}
    rows = [
        blank | {"night": NIGHT, "search": search, "kind": "goodput", "repeat": repeat, "value": value, "probe": probe}
        for search, values in found.items()
        for repeat, value in enumerate(values)
        for probe in range(3)  # the value stands on each of them
    ]
    write_rows(tmp_path / "lake", "search_probes", NIGHT, rows)

    pooled = run_sql(tmp_path, "SELECT search, repeats, is_whole, value, value_low, value_high FROM search_repeats")

    by_name = {row[0]: row[1:] for row in pooled.rows}
    half = 4.303 * math.log(1.25) / math.sqrt(3)  # the 0.975 quantile of two degrees of freedom
    low, high = 10 / math.exp(half), 10 * math.exp(half)
    assert by_name["users"] == (3, True, *(pytest.approx(end, rel=1e-3) for end in (10.0, low, high)))
    assert by_name["once"] == (1, True, pytest.approx(30.0), None, None)
    assert by_name["gap"] == (3, False, *[pytest.approx(20.0)] * 3)


def test_the_next_probe_comes_before_all_that_waits(tmp_path: Path, night: NightRecord) -> None:
    first, other = sorted(night.runs, key=lambda run: run.scenario.name != "users")
    measured(tmp_path, night, first)
    second, last = store.still_missing(tmp_path, night, first, [other])
    assert (second.scenario.workload.concurrency, last) == (4, other)
    measured(tmp_path, night, second)
    third, _last = store.still_missing(tmp_path, night, second, [other])
    assert third.scenario.workload.concurrency == 16
    assert third.scenario.name == "users/concurrency=16"
    assert third.scenario.server_id == first.scenario.server_id, "no server is started for it"


def test_a_search_whose_first_probe_fails_ends_with_its_reason(tmp_path: Path, night: NightRecord) -> None:
    for run in night.runs:
        write_run(tmp_path, night, run, Shape(), Told("failed", "measure", "no request succeeded (http_error)"))
    assert store.missing_runs(tmp_path, night) == []
    for found in store.search_results(tmp_path, night):
        assert found.is_over
        assert found.value is None
        assert "no request succeeded (http_error)" in found.why


def test_an_slo_that_no_rate_keeps_is_shown_by_one_probe(tmp_path: Path, night: NightRecord) -> None:
    chat = next(run for run in night.runs if run.scenario.name == "chat")
    write_run(tmp_path, night, chat, Shape(requests=100, arrivals="constant", ttft_ms=90.0))
    assert "chat" not in {run.scenario.name.partition("/")[0] for run in store.missing_runs(tmp_path, night)}
    found = store.search_results(tmp_path, night)[1]
    assert found.why == (
        "no rate keeps the SLO (99% of requests with ttft <= 50 ms): at 0.5/s, the lowest, 0% of the requests keep it"
    )


def test_a_search_that_is_not_over_begins_anew_on_another_kind_of_machine(tmp_path: Path, night: NightRecord) -> None:
    users = next(run for run in night.runs if run.scenario.name == "users")
    measured(tmp_path, night, users)
    done = [run for run in night.runs if store.is_done(tmp_path, night, run)]
    assert done == []
    moved = on_kind(night, "gpu-mi325x1-256gb", done)
    names = sorted(run.scenario.name for run in store.missing_runs(tmp_path, moved))
    assert names == ["chat", "users"]
