"""Each suite of a published work in its local shape, on the real engine: every run is measured and reported."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.suite.suite import Suite
from infra.loadgen.suite_file import parse_suite_file
from infra.storage import store
from tests.flows.conftest import NightFixture, end_all, live_in, make_house, run_nightly, trust_the_client
from tests.flows.real_engine import llama_server, with_python
from tests.pairs import IS_SOAK

pytestmark = [pytest.mark.matrix, pytest.mark.e2e, pytest.mark.prefect, pytest.mark.timeout(1500)]
SUITES = Path(__file__).parents[2] / "suites"
WORKS = ("llama-3.3-70b-mi300x", "amd-mi300x-throughput", "amd-mi300x-training")
RANKS = "SELECT value FROM command_metrics WHERE night = '{night}' AND metric = 'ranks' ORDER BY value"
PRICED = ("cost", "night_cost", "machine_prices")
METRICS = "SELECT scenario_id, metric FROM command_metrics WHERE night = '{night}'"
# Each starts more engines; a night of their shape on the known-truth server is in a test of its own.
LONG_WORKS = ("llama-4-mi300x-h200", "mi325x-study", "rocm-cuda-deep-dive") if IS_SOAK else ()


@pytest.fixture(scope="module")
def real_house(
    tmp_path_factory: pytest.TempPathFactory, engine: str, quick_engine: Path, prefect_home: Path, prefect_api: None
) -> Iterator[NightFixture]:
    """One data folder for all suites, so that what one night makes or builds serves the next."""
    del prefect_api
    house = make_house(tmp_path_factory.mktemp("suites"), prefect_home)
    if IS_SOAK:
        house.environment["NIGHTBENCH_LLAMA_SERVER"] = str(llama_server())
    house.environment["NIGHTBENCH_VLLM_EXECUTABLE"] = str(with_python(quick_engine, engine, house.data.parent / "bin"))
    with pytest.MonkeyPatch.context() as patch:
        live_in(house, patch)
        trust_the_client(patch)
        yield house
    end_all(house)


@pytest.mark.parametrize("name", [*WORKS, *LONG_WORKS])
def test_every_run_of_the_local_shape_of_a_published_work_is_measured(real_house: NightFixture, name: str) -> None:
    path = SUITES / f"{name}.toml"
    night = run_nightly(real_house, suite=path).night

    columns = "scenario, scenario_id, repeat, outcome, reason"
    sql = f"SELECT {columns} FROM measurements WHERE night = '{night}' ORDER BY \"order\""
    found = json.loads(real_house.call("sql", sql, "--json").stdout)
    planned = store.read_night(real_house.data, night).runs
    asked = sorted((run.scenario.scenario_id, run.repeat) for run in planned)
    probes = [row for row in found if (row["scenario_id"], row["repeat"]) not in asked]  # of its sweeps and searches
    assert sorted((row["scenario_id"], row["repeat"]) for row in found if row not in probes) == asked
    suite, _ = parse_suite_file(path)
    searches = [f"{one.name}/" for one in suite.scenarios if one.search is not None]
    assert [row for row in probes if not any(row["scenario"].startswith(search) for search in searches)] == []
    assert [row for row in found if row["outcome"] != "measured"] == []
    metrics = json.loads(real_house.call("sql", METRICS.format(night=night), "--json").stdout)
    commands = [(run.scenario.scenario_id, run.scenario.workload.command) for run in planned]
    rules = [(of, rule.name) for of, command in commands if command for rule in command.metrics]
    assert sorted((row["scenario_id"], row["metric"]) for row in metrics) == sorted(rules)
    if name == "amd-mi300x-training":  # a row of several nodes is two torchruns that meet
        ranks = real_house.call("sql", RANKS.format(night=night), "--json").stdout
        assert [row["value"] for row in json.loads(ranks)] == [1.0, 1.0, 2.0, 2.0, 2.0]
    assert real_house.leftovers() == []
    _require_report(real_house, night, path, suite)


def _require_report(house: NightFixture, night: str, path: Path, suite: Suite) -> None:
    """The report has every table but those with prices, and the rows of the work."""
    reported = house.call("report", night, "--suite", str(path), "--format", "json")
    written = house.data / "reports" / night
    assert sorted(one.name for one in written.iterdir()) == [
        f"{path.stem}.{form}" for form in ("csv", "html", "json", "md")
    ]
    assert (written / f"{path.stem}.json").read_text() == reported.stdout
    tables = {table["title"]: table["rows"] for table in json.loads(reported.stdout)["tables"]}
    # A miniature shows no price: that of the suite's machine says nothing of what this computer does.
    priced = {one.title for one in suite.report.tables if one.kind in PRICED or one.title.startswith("Cost")}
    assert list(tables) == [one.title for one in suite.report.tables if one.title not in priced]
    first = next(one for one in suite.report.tables if one.kind in ("scenarios", "commands"))
    named = [one for one in suite.expand() if one.name.startswith(first.only)]
    scenarios = [one.name for one in named if first.machine in (None, one.machine.name)]
    # A comparison needs accepted runs, which a busy computer has not, and prices that are not 0.
    comparisons = {one.title for one in suite.report.tables if one.kind in ("machine_pairs", "machine_pair_means")}
    assert {title for title, rows in tables.items() if rows == []} <= comparisons
    assert list(dict.fromkeys(row["scenario"] for row in tables[first.title])) == scenarios  # those of the work
