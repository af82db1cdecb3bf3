"""The views of repeats, against scipy's intervals and a hand calculation."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
import scipy.stats

from warehouse.lake.lake import write_rows
from warehouse.lake.query import run_sql
from warehouse.rows.row_ids import blank_row
from warehouse.rows.run_folder import RunId

METRIC = "output_throughput_tok_per_s"
FIRST = (100.0, 104.0, 97.0, 101.0)
SECOND = (90.0, 92.0)


def write(  # noqa: PLR0913 - what a row can say
    data: Path,
    leases: Sequence[Sequence[float]],
    night: str = "2026-03-01",
    first: float | None = None,
    *,
    scenario_id: str = "a" * 16,
    seconds: float = 60.0,
    setup: Mapping[str, object] = MappingProxyType({}),
) -> None:
    """A night of one scenario: a row per repeat, lease by lease; `first` is that of a run just after a server start."""
    began = datetime(2026, 3, 1, tzinfo=UTC)
    times = {"started_at": began, "ended_at": began + timedelta(seconds=seconds)}
    values = [(lease, value, False) for lease, of_lease in enumerate(leases) for value in of_lease]
    values += [] if first is None else [(0, first, True)]
    rows = [
        blank_row(RunId(night, scenario_id, repeat))
        | {"scenario": "chat", "outcome": "measured", "verdict": "accepted", "lease_id": f"{night}-{lease}"}
        | {"is_first_after_start": is_first, METRIC: value, **times, **setup}
        for repeat, (lease, value, is_first) in enumerate(values)
    ]
    write_rows(data / "lake", "measurements", night, rows)


def asked(data: Path, view: str) -> list[dict[str, Any]]:
    return run_sql(data, f"SELECT * FROM {view} WHERE metric = '{METRIC}' ORDER BY ALL").dicts()


def test_the_interval_of_repeats_on_one_lease_is_students_on_logarithms(tmp_path: Path) -> None:
    write(tmp_path, [FIRST])

    (found,) = asked(tmp_path, "night_repeats")

    logs = np.log(FIRST)
    low, high = scipy.stats.t.interval(0.95, len(logs) - 1, logs.mean(), scipy.stats.sem(logs))
    assert (found["repeats"], found["leases"], found["spread_between"]) == (4, 1, None)
    assert found["mean"] == pytest.approx(scipy.stats.gmean(FIRST))
    assert found["spread_within"] == pytest.approx(logs.std(ddof=1))
    assert (found["low"], found["high"]) == (
        pytest.approx(np.exp(low), rel=1e-4),
        pytest.approx(np.exp(high), rel=1e-4),
    )


def test_the_spread_between_leases_is_told_from_that_within_them(tmp_path: Path) -> None:
    write(tmp_path, [FIRST, SECOND])

    (found,) = asked(tmp_path, "night_repeats")

    one, other = np.log(FIRST), np.log(SECOND)
    within = (one.var(ddof=1) * 3 + other.var(ddof=1)) / 4
    between = np.var([one.mean(), other.mean()], ddof=1) - within * (1 / 4 + 1 / 2) / 2
    assert found["spread_within"] == pytest.approx(within**0.5)
    assert found["spread_between"] == pytest.approx(between**0.5)
    assert found["half_width"] == pytest.approx(scipy.stats.t.ppf(0.975, 4) * (within / 6) ** 0.5, rel=3e-4)


def test_many_repeats_on_two_leases_have_an_interval(tmp_path: Path) -> None:
    write(tmp_path, [np.random.default_rng(lease).normal(100, 2, 80).tolist() for lease in range(2)])

    (found,) = asked(tmp_path, "night_repeats")

    expected = scipy.stats.t.ppf(0.975, 158) * found["spread_within"] / 160**0.5
    assert found["half_width"] == pytest.approx(expected, rel=0.01)


def test_one_repeat_has_a_mean_and_no_interval(tmp_path: Path) -> None:
    write(tmp_path, [FIRST[:1]])

    (found,) = asked(tmp_path, "night_repeats")

    assert found["mean"] == pytest.approx(100.0)
    assert [found[name] for name in ("spread_within", "spread_between", "half_width", "low", "high")] == [None] * 5


@pytest.mark.parametrize(("leases", "repeats", "mean"), [([SECOND], 2, 8280**0.5), ([], 1, 10.0)])
def test_the_first_run_after_a_server_start_counts_only_where_there_is_no_other(
    tmp_path: Path, leases: Sequence[Sequence[float]], repeats: int, mean: float
) -> None:
    write(tmp_path, leases, first=10.0)

    (found,) = asked(tmp_path, "night_repeats")

    assert (found["repeats"], found["mean"]) == (repeats, pytest.approx(mean))


def test_a_noisy_night_counts_in_the_night_and_not_in_the_history_of_the_spread(tmp_path: Path) -> None:
    write(tmp_path, [FIRST])
    write(tmp_path, [(100.0, 160.0)], "2026-03-02", setup={"verdict": "suspect", "is_only_noisy": True})

    noisy = asked(tmp_path, "night_repeats")[-1]
    (history,) = asked(tmp_path, "repeat_history")

    assert (noisy["night"], noisy["repeats"], noisy["half_width"] > 1) == ("2026-03-02", 2, True)
    assert (history["leases"], history["spread_within"]) == (1, pytest.approx(np.log(FIRST).std(ddof=1)))


def test_the_history_pools_every_lease_with_its_degrees_of_freedom(tmp_path: Path) -> None:
    write(tmp_path, [FIRST])
    write(tmp_path, [SECOND], "2026-03-02")

    (found,) = asked(tmp_path, "repeat_history")

    within = (np.log(FIRST).var(ddof=1) * 3 + np.log(SECOND).var(ddof=1)) / 4
    assert found["spread_within"] == pytest.approx(within**0.5)
    assert [found[name] for name in ("leases", "repeats", "degrees_within", "degrees_between")] == [2, 6, 4, 1]
