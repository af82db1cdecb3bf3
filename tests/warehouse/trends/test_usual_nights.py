"""Searches among versions, and second measurements of suspects, are no newest night, no release and no failed one."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.warehouse.simulated_lake import write
from warehouse.lake.database import build_warehouse
from warehouse.lake.query import ask
from warehouse.schema.row import Row
from warehouse.site.overview import PER_USD, overview, tier
from warehouse.site.questions import POINTS, TRIED
from warehouse.trends.own_series import own_series, with_failed_nights
from warehouse.trends.releases import releases
from warehouse.trends.usual_pairs import compare_usual, usual_pairs

BEGIN = datetime(2026, 1, 1, 1, tzinfo=UTC)
BISECT = ["model", "bisect"]


def run(day: int, load: int = 8, version: str = "0.10", hour: int = 1, **more: object) -> Row:
    """A run of a load, that costs less the more users there are."""
    at = BEGIN + timedelta(days=day, hours=hour - 1)
    night = f"{at:%Y-%m-%dT%H%M%SZ}"
    ids = {
        "night": night,
        "run_id": f"{night}/c{load}/0",
        "scenario_id": f"c{load}",
        "repeat": 0,
        "scenario": f"c{load}",
    }
    where = {"suite": "s", "model": "m", "precision": "fp8", "machine_kind": "k", "engine": "vllm", "driver": "meter"}
    found = {"engine_version_found": version, "gpus": ["G"], "gpu_count": 1, "started_at": at, "lease_id": night}
    values = {
        "isl": 16,
        "osl": 8,
        "concurrency_asked": load,
        "tpot_p50_ms": 10.0 * load,
        "usd_per_mtok_output": 8.0 / load,
    }
    outcome = {"outcome": "measured", "verdict": "accepted", "output_throughput_tok_per_s": 100.0}
    return ids | where | found | values | outcome | more


def lake(data: Path, runs: Iterable[Row]) -> Path:
    nights: dict[str, list[Row]] = {}
    for row in runs:
        nights.setdefault(str(row["night"]), []).append(row)
    for night, rows in nights.items():
        write(data / "lake", "measurements", night, rows)
    build_warehouse(data)
    return data


@pytest.fixture
def measured_again(tmp_path: Path) -> Path:
    """Forty days apart two nights of two loads, after the second one of which a load was measured again."""
    again = run(40, 1, hour=3)
    night, first = str(again["night"]), str(run(40)["night"])
    verdict = {"night": night, "judged_night": first, "rerun_of": first, "judgement": "confirmed", "measured_at": BEGIN}
    write(
        tmp_path / "lake", "series_verdicts", night, [verdict | {"source": "nightbench", "series": "s", "metric": "m"}]
    )
    return lake(tmp_path, [*(run(day, load) for day in (0, 40) for load in (1, 8)), again])


def test_the_newest_night_of_a_setup_is_not_one_that_measured_again(measured_again: Path) -> None:
    (line,) = overview(ask(measured_again, POINTS).dicts(), ask(measured_again, TRIED).dicts())

    assert (line.cells[PER_USD].value, line.cells[PER_USD].change_pct) == (1e6, 0.0)
    assert line.cells[tier(50)].value is not None


def test_the_night_before_is_held_against_the_night_and_not_its_second_measurement(measured_again: Path) -> None:
    pairs = {pair.name: pair.other.text for pair in usual_pairs(measured_again)}

    assert pairs["s the night before"] == "suite=s,night=2026-02-10T010000Z"


def test_a_search_measures_no_new_release(tmp_path: Path) -> None:
    usual = [run(day, version="0.10" if day < 6 else "0.14") for day in range(12)]
    searched = [run(20 + day, version=f"0.1{day}", series_identity=BISECT) for day in (1, 2, 3)]

    (found,) = releases(lake(tmp_path, [*usual, *searched]))

    assert (found.before, found.newest) == ("0.10", "0.14")
    assert not [pair for pair in found.comparison.found.pairs if "bisect" in pair.series]


@pytest.mark.parametrize("days", [(0, 100, 101), (0, 40, 41)])
def test_nights_are_compared_across_a_pause(tmp_path: Path, days: tuple[int, ...]) -> None:
    data = lake(tmp_path, [run(day) for day in days])

    compared = {pair.name: comparison for pair, comparison in compare_usual(data)}

    assert {name for name, one in compared.items() if one.found.pairs} == set(compared)
    assert "s 30 days before" in compared or "s 7 days before" in compared


def test_a_night_of_a_search_is_no_failed_night(tmp_path: Path) -> None:
    data = lake(tmp_path, [run(1), run(2, version="0.9", series_identity=BISECT), run(3)])

    listed = list(with_failed_nights(data, own_series(data)))

    assert {len(one.points) for one in listed} == {2}
    assert all(point.is_valid for one in listed for point in one.points)


def test_what_was_accepted_on_other_gpus_has_not_failed(tmp_path: Path) -> None:
    gpus = ["G", "H", "G", "H"]
    data = lake(tmp_path, [run(day, gpus=[gpu]) for day, gpu in enumerate(gpus)])

    listed = list(with_failed_nights(data, own_series(data)))

    assert {(len(one.points), len(one.valid)) for one in listed} == {(2, 2)}
