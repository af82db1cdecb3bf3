"""The picture of a history: a mark a night, and an interval a release that holds the truth."""

from pathlib import Path

from benchmarks.history.picture import AA, METRICS, draw, intervals, main
from tests.benchmarks.small_history import write_small_history


def mark(release: str, value: float, kind: str = "night") -> dict[str, object]:
    metric = next(iter(METRICS.values()))
    return {"panel": "vllm, chat", "metric": metric, "release": release, "value": value, "kind": kind}


def test_a_release_of_several_nights_has_an_interval_around_their_mean() -> None:
    found = intervals([mark("1", 10.0), mark("1", 10.2), mark("1", 9.9), mark("2", 20.0)])

    assert [one["release"] for one in found] == ["1"]
    assert found[0]["low"] < 9.9 < found[0]["mean"] < 10.2 < found[0]["high"]


def test_the_picture_names_the_releases_and_marks_the_second_night_of_a_round() -> None:
    page = draw([mark("0.31.0", 10.0), mark("0.32.0", 11.0), mark("0.32.0", 11.1, AA)])

    assert page.startswith("<svg")
    assert all(word in page for word in ("0.31.0", "0.32.0", "vllm, chat", AA))


def test_a_history_is_drawn_by_scenario_and_metric(tmp_path: Path) -> None:
    write_small_history(tmp_path / "data", tmp_path / "set")

    main(["--history", str(tmp_path / "set"), "--out", str(tmp_path / "out.svg")])

    page = (tmp_path / "out.svg").read_text()
    assert all(f"vllm, chat-{slots}" in page for slots in (1, 4, 16, 64))
    assert all(title in page for title in METRICS.values())
