"""The views that compare the machines of a night, against scipy's Welch interval and a hand calculation."""

from pathlib import Path

import numpy as np
import pytest
import scipy.stats

from catalog.read import read_prices
from warehouse.lake.lake import write_rows
from warehouse.lake.query import run_sql
from warehouse.rows.row_ids import blank_row
from warehouse.rows.run_folder import RunId
from warehouse.schema.row import Row

NIGHT = "2026-03-01"
ON_A, ON_B = (100.0, 104.0, 97.0), (80.0, 79.0, 85.0)
MI300X = ("MI300X", 1, None)  # one of it on demand
KINDS = {"h200": "gpu-h200x8-1128gb", "mi300x": "gpu-mi300x8-1536gb"}


def rows_of(machine: str, values: tuple[float, ...], usd_per_hour: float, **more: object) -> list[Row]:
    terms: Row = {"isl": 2000, "osl": 150, "model_sha256": "f" * 64, "precision": "fp8", "driver": "meter"}
    return [
        blank_row(RunId(NIGHT, machine[0] * 16, repeat))
        | {"scenario": f"chat@{machine}", "outcome": "measured", "verdict": "accepted", "lease_id": f"of-{machine}"}
        | {"machine": machine, "machine_kind": KINDS[machine], "usd_per_hour": usd_per_hour, "suite": "two"}
        | {"output_throughput_tok_per_s": value, "is_first_after_start": False, **terms, **more}
        for repeat, value in enumerate(values)
    ]


def test_the_ratio_of_two_machines_has_welchs_interval(tmp_path: Path) -> None:
    rows = [*rows_of("h200", ON_A, 35.76), *rows_of("mi300x", ON_B, 20.72)]
    write_rows(tmp_path / "lake", "measurements", NIGHT, rows)

    (found,) = run_sql(tmp_path, "FROM machine_pairs WHERE metric = 'output_throughput_tok_per_s'").dicts()

    a, b = np.log(ON_A), np.log(ON_B)
    welch = scipy.stats.ttest_ind(a, b, equal_var=False)
    half = scipy.stats.t.ppf(0.975, int(welch.df)) * np.sqrt(a.var(ddof=1) / 3 + b.var(ddof=1) / 3)
    ratio = np.exp(a.mean() - b.mean())
    assert (found["scenario"], found["machine_a"], found["machine_b"], found["refused"]) == ("chat", *KINDS, None)
    assert found["ratio"] == pytest.approx(ratio)
    assert found["ratio_low"] == pytest.approx(ratio * np.exp(-half), rel=1e-3)
    assert found["ratio_high"] == pytest.approx(ratio * np.exp(half), rel=1e-3)


def test_machines_with_other_weights_or_another_workload_are_not_compared(tmp_path: Path) -> None:
    rows = [*rows_of("h200", ON_A, 35.76, osl=100, model_sha256="0" * 64), *rows_of("mi300x", ON_B, 20.72)]
    write_rows(tmp_path / "lake", "measurements", NIGHT, rows)

    found = run_sql(tmp_path, "SELECT DISTINCT refused, ratio, ratio_low FROM machine_pairs").rows

    assert found == (("the workload differs; the weights differ", None, None),)


def test_one_repeat_on_each_machine_has_a_ratio_and_no_interval(tmp_path: Path) -> None:
    write_rows(
        tmp_path / "lake", "measurements", NIGHT, [*rows_of("h200", (90.0,), 1.0), *rows_of("mi300x", (60.0,), 1.0)]
    )

    (found,) = run_sql(tmp_path, "FROM machine_pairs WHERE metric = 'output_throughput_tok_per_s'").dicts()

    assert (round(found["ratio"], 6), found["ratio_low"]) == (1.5, None)


def test_output_tokens_are_priced_at_the_nights_price_and_at_each_listed_one(tmp_path: Path) -> None:
    rows = [*rows_of("h200", (1000.0,), 30.0), *rows_of("mi300x", (500.0,), 10.0)]
    write_rows(tmp_path / "lake", "measurements", NIGHT, rows)

    found = run_sql(tmp_path, "SELECT machine, provider, usd_per_hour, usd_per_mtok_output FROM machine_prices").rows

    assert found[0] == ("h200", None, 30.0, pytest.approx(30.0 / 3.6))
    assert ("mi300x", None, 10.0, pytest.approx(10.0 / 1.8)) in found
    assert ("h200", "digitalocean", 35.76, pytest.approx(35.76 / 3.6)) in found  # that of sizes.csv, not the older one
    assert ("mi300x", "digitalocean", 20.72, pytest.approx(20.72 / 1.8)) in found


def test_a_price_that_not_everybody_pays_on_demand_is_not_listed(tmp_path: Path) -> None:
    rows = rows_of("mi300x", (500.0,), 10.0) + rows_of("h200", (500.0,), 10.0)
    one = [row | {"machine_kind": "gpu-mi300x1-192gb"} for row in rows]
    write_rows(tmp_path / "lake", "measurements", NIGHT, one)

    listed = dict(run_sql(tmp_path, "SELECT provider, usd_per_hour FROM machine_prices WHERE provider NOT NULL").rows)

    on_demand = {price.provider for price in read_prices() if (price.gpu, price.gpu_count, price.terms) == MI300X}
    assert on_demand <= listed.keys()
    assert not {"crusoe", "azure", "oracle"} & listed.keys(), "a spot price, and two that are known about"
