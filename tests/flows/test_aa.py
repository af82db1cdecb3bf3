"""A/A nights: the same suite twice in a row, and how far two equal nights differ."""

import logging
from pathlib import Path

import pytest

from flows.aa import measure_twice, noise_floor
from flows.night_request import NightRequest
from infra.settings import Settings
from tests.warehouse.folders import Shape, whole_night
from warehouse.load import LoadSummary, load_night

FIRST, SECOND = "2026-03-01T140000Z", "2026-03-01T150000Z"
REQUEST = NightRequest("suites/local.toml", "local", wait=True)


def test_both_nights_are_measured_and_their_differences_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nights = [(FIRST, Shape(gap_ms=5.0)), (SECOND, Shape(gap_ms=5.5))]
    tables = list[tuple[str, list[dict[str, object]]]]()

    def measure(_settings: Settings, request: NightRequest) -> LoadSummary:
        assert request == REQUEST
        name, shape = nights.pop(0)
        whole_night(tmp_path, name, {"chat": shape})
        return load_night(tmp_path, name)

    monkeypatch.setattr("flows.aa.whole_night", measure)
    monkeypatch.setattr("flows.aa.show_table", lambda key, rows, _text: tables.append((key, rows)))
    monkeypatch.setattr("flows.aa.is_good", lambda _summary: True)
    monkeypatch.setattr("flows.aa.ended", lambda _data, summary: summary)
    monkeypatch.setattr("flows.aa.get_run_logger", lambda: logging.getLogger("test"))

    summary = measure_twice(Settings(data=tmp_path), REQUEST)

    assert summary.night == SECOND
    ((key, rows),) = tables
    assert key == "a-a"
    assert noise_floor(rows)["tpot_p50_ms"] == pytest.approx(10.0, abs=0.5)


def test_a_bad_first_night_has_no_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured = list[NightRequest]()

    def measure(_settings: Settings, request: NightRequest) -> LoadSummary:
        measured.append(request)
        return LoadSummary(FIRST, 1, 0, {"failed": 1}, (), ())

    monkeypatch.setattr("flows.aa.whole_night", measure)

    state: object = measure_twice(Settings(data=tmp_path), REQUEST)

    assert getattr(state, "name", None) == "Failed"
    assert len(measured) == 1
