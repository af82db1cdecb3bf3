"""A search over releases beside all nights of a history: what both say, and that no folder of a computer is kept."""

from pathlib import Path

import pytest

from bench.trends.bisect import Bisection, Measured
from benchmarks.history.bisections import bisections_section, export_bisections, main, of_history
from benchmarks.history.resampled import METRICS
from infra.storage import store
from infra.storage.begun_nights import BISECTIONS
from warehouse.demo.story import NEW_ENGINE, OLD_ENGINE
from warehouse.trends.own_series import own_series


def search(*values: float) -> Bisection:
    """A search whose nights are of the older and the newer release in turns."""
    nights = enumerate(values)
    measured = [
        Measured(candidate=(OLD_ENGINE, NEW_ENGINE)[at % 2], night=str(at), by_series={"s": value})
        for at, value in nights
    ]
    return Bisection(
        metric=METRICS[0],
        suite="/somewhere/suites/history.toml",
        target="local",
        candidates=(OLD_ENGINE, NEW_ENGINE),
        measured=tuple(measured),
    )


def keep(data: Path, found: Bisection) -> None:
    store.write_json(data / BISECTIONS / "0123.json", found)


def test_all_nights_of_both_releases_answer_the_same_question(loaded: tuple[Path, Path]) -> None:
    exhaustive = of_history(search(), list(own_series(loaded[0])))

    assert [one.candidate for one in exhaustive.measured].count(NEW_ENGINE) == 5
    assert len(exhaustive.measured) == 10
    assert all(len(one.by_series) > 1 for one in exhaustive.measured)


def test_a_search_is_listed_beside_what_all_nights_say(tmp_path: Path, loaded: tuple[Path, Path]) -> None:
    keep(tmp_path, search(100.0, 110.0, 100.1, 110.1))

    (file,) = export_bisections(tmp_path, loaded[1])
    page = bisections_section(*loaded)

    assert "somewhere" not in file.read_text()
    found = f"{NEW_ENGINE} is the first one that moved {METRICS[0]}; {OLD_ENGINE} is the last one before"
    assert f"| {METRICS[0]} | all | {OLD_ENGINE} | {NEW_ENGINE} | {found} | 4 | {found} | 10 |" in page


def test_a_search_that_is_not_over_says_what_it_would_measure_next(tmp_path: Path, loaded: tuple[Path, Path]) -> None:
    keep(tmp_path, search(100.0))
    export_bisections(tmp_path, loaded[1])

    assert f"| {NEW_ENGINE}: the ends are measured first | 1 |" in bisections_section(*loaded)


def test_without_a_search_the_page_has_no_such_section(
    tmp_path: Path, loaded: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert bisections_section(loaded[0], tmp_path) == ""
    assert (main([str(tmp_path)]), capsys.readouterr().out) == (0, "")
