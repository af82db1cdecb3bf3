"""A search keeps each night at once, goes on after an interruption, and stays in its budget."""

import math
import tomllib
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from bench.errors import UsageError
from bench.trends.bisect import Bisection, Measured, Step
from bench.trends.series import Point, Series, SeriesKey
from flows.bisect import _without_host, read_candidates, require_listed, run_search, state_file
from infra.loadgen.suite_file import make_night
from infra.storage import store
from infra.storage.begun_nights import begun_night
from tests.flows.test_causes import write_suite

METRIC, VERSIONS, FIRST_BAD = "output_throughput_tok_per_s", tuple(f"0.{at}.0" for at in range(8)), 5


class Engines:
    """An engine history: the speed of each version, by the suite that a night is run of; it steps once."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.ran, self.stop_after = list[str](), stop_after

    def measure(self, candidate: str, suite: Path) -> Measured:
        if len(self.ran) == self.stop_after:
            raise KeyboardInterrupt
        version = tomllib.loads(suite.read_text())["engine"]["version"]
        assert version == candidate
        self.ran.append(version)
        speed = 100.0 * (0.9 if VERSIONS.index(version) >= FIRST_BAD else 1.0)
        return Measured(candidate=candidate, night=f"night {len(self.ran)}", by_series={"chat": speed})


@pytest.fixture
def search(tmp_path: Path) -> Bisection:
    suite = tmp_path / "suite.toml"
    suite.write_text("")
    return Bisection(metric=METRIC, suite=str(suite), target="local", candidates=VERSIONS)


def run(data: Path, search: Bisection, engines: Engines, budget: float | None = None) -> Step:
    _search, step = run_search(data, search, engines.measure, lambda _night: 2.0, budget)
    return step


def test_the_first_bad_version_is_found_with_the_fewest_nights(tmp_path: Path, search: Bisection) -> None:
    engines = Engines()
    step = run(tmp_path, search, engines)

    assert (step.good, step.bad, step.is_found) == ("0.4.0", "0.5.0", True)
    assert len(engines.ran) == 4 + math.ceil(math.log2(len(VERSIONS) - 1))


def test_a_search_that_was_stopped_measures_no_night_again(tmp_path: Path, search: Bisection) -> None:
    engines = Engines(stop_after=5)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, search, engines)
    engines.stop_after = None
    step = run(tmp_path, search, engines)

    assert step.bad == "0.5.0"
    assert len(engines.ran) == 4 + math.ceil(math.log2(len(VERSIONS) - 1))


def test_no_night_is_run_that_the_budget_may_not_pay(tmp_path: Path, search: Bisection) -> None:
    engines = Engines()
    step = run(tmp_path, search, engines, 11.0)

    assert len(engines.ran) == 5
    assert "10.00 USD of 11.00 are spent" in step.reason
    assert not step.is_found


def test_a_damaged_file_of_a_search_is_named(tmp_path: Path, search: Bisection) -> None:
    path = state_file(tmp_path, search)
    path.parent.mkdir()
    path.write_text("{")
    with pytest.raises(UsageError, match="move it away"):
        run(tmp_path, search, Engines())


def test_a_list_without_an_end_or_with_one_twice_is_refused(tmp_path: Path) -> None:
    listed = tmp_path / "versions.txt"
    listed.write_text("# oldest first\n0.1.0\n\n0.2.0\n")
    assert read_candidates(listed) == ["0.1.0", "0.2.0"]
    with pytest.raises(UsageError, match=r"0\.3\.0 is not in the list: 0\.1\.0, 0\.2\.0"):
        require_listed(["0.1.0", "0.2.0"], ("0.1.0", "0.3.0"))
    with pytest.raises(UsageError, match="are both"):
        require_listed(["0.1.0"], ("0.1.0", "0.1.0"))
    listed.write_text("0.1.0\n0.1.0\n")
    with pytest.raises(UsageError, match="twice"):
        read_candidates(listed)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "date,name\n2026-03-02,0.2.0\n2026-03-01,0.1.0\n"),
        ("a.csv", "name\n0.1.0\n0.2.0\n"),
        (
            "a.toml",
            '[[candidates]]\nname = "0.2.0"\ndate = 2026-03-02\n[[candidates]]\nname = "0.1.0"\ndate = 2026-03-01\n',
        ),
    ],
)
def test_a_table_of_candidates_is_put_in_the_order_of_its_dates(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)

    assert read_candidates(tmp_path / name) == ["0.1.0", "0.2.0"]


@pytest.mark.parametrize(("name", "text"), [("a.csv", "image\n0.1.0\n"), ("a.toml", "x = 1\n"), ("a.toml", "x =")])
def test_a_table_without_names_is_refused(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)

    with pytest.raises(UsageError, match=r"has no 'name'|has no 'candidates'|cannot be read"):
        read_candidates(tmp_path / name)


def test_only_a_night_that_no_search_counted_and_that_has_the_scenario_is_resumed(tmp_path: Path) -> None:
    suite = write_suite(tmp_path, "0.31.0")
    planned = make_night(suite, "local", poc=False, is_draft=True)
    for name, scenarios in (("1", {"chat"}), ("2", {"long"}), ("3", {"chat"}), ("4", {"chat", "long"})):
        runs = tuple(run for run in planned.runs if run.scenario.name in scenarios)
        store.write_json(store.night_file(tmp_path, name), planned.model_copy(update={"night": name, "runs": runs}))
    counted = Measured(candidate="0.31.0", night="1", by_series={"chat": 1.0})
    other = Bisection(metric=METRIC, suite=str(suite), target="local", candidates=VERSIONS, measured=(counted,))
    store.write_json(state_file(tmp_path, other), other)

    asked = [(["x"], "chat"), (["3"], "chat"), ([], "long"), ([], None), (["4"], None)]
    found = [begun_night(tmp_path, planned.suite_sha256, "local", known, scenario) for known, scenario in asked]

    assert found == ["3", "4", "2", "4", None]


def test_what_the_control_says_of_a_host_is_taken_off() -> None:
    random = np.random.default_rng(1)
    host, own = random.normal(0, 0.03, 21), random.normal(0, 0.003, 21)
    host[-1] = -0.1  # a slow one
    points = tuple(
        Point(f"2026-03-{at + 1:02}", datetime(2026, 3, at + 1, tzinfo=UTC), 100 * math.exp(h + o), control=7.6 + h)
        for at, (h, o) in enumerate(zip(host, own, strict=True))
    )
    series = Series(SeriesKey("us", "m/a", METRIC), points, is_lower_better=False)

    found = _without_host(series, points[-1], began=points[-1].night)

    assert abs(found - math.log(100)) < 0.02 < abs(math.log(points[-1].value / 100))
    assert _without_host(series, points[-1], began=points[3].night) == math.log(points[-1].value)
