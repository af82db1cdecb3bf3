"""The compare page says of two engine versions what `nightbench compare` says of them."""

import csv
from pathlib import Path

from tests.warehouse.conftest import NEW, OLD
from tests.warehouse.test_histories import PLAIN
from warehouse.histories import import_history
from warehouse.site.releases import releases_html
from warehouse.trends.compare import compare
from warehouse.trends.releases import METRICS

COLUMNS = ("series", "metric", "verdict", "effect_pct", "ci_lo", "ci_hi", "p", "min_effect_pct", "mde_pct")
HISTORY = """source_repo,timestamp,series,metric,unit,value,engine_version
other,2026-02-01T01:00:00Z,a,throughput,tok/s,50,1.0
other,2026-02-02T01:00:00Z,a,throughput,tok/s,51,2.0
other,2026-02-02T01:00:00Z,<b>,throughput,tok/s,51,2.0
"""


def test_each_pair_and_each_mean_of_a_release_is_that_of_the_command(versions: Path, tmp_path: Path) -> None:
    page = releases_html(versions, tmp_path)
    found = compare(versions, f"engine=vllm,engine_version={OLD}", f"engine=vllm,engine_version={NEW}").answer()
    with (tmp_path / "data" / "releases.csv").open() as file:
        pairs = list(csv.DictReader(file))
    with (tmp_path / "data" / "release_means.csv").open() as file:
        means = list(csv.DictReader(file))

    assert [{name: row[name] for name in COLUMNS} for row in pairs] == [
        {name: str(row[name]) for name in COLUMNS} for row in found["pairs"] if row["metric"] in METRICS
    ]
    assert [(row["metric"], row["ci_lo"], row["best"]) for row in means] == [
        (row["metric"], str(row["ci_lo"]), row["best"]) for row in found["geometric_means"] if row["metric"] in METRICS
    ]
    assert f"<h2>vllm: {NEW} against {OLD}</h2>" in page
    assert "<td class='loss'>loss</td>" in page.partition("<details>")[0]


def test_a_series_of_one_version_is_refused_with_the_reason(tmp_path: Path) -> None:
    file = tmp_path / "other.csv"
    file.write_text(HISTORY)
    import_history(tmp_path, file, PLAIN)

    page = releases_html(tmp_path, tmp_path)

    assert "<h2>other: 2.0 against 1.0</h2>" in page
    assert "1 pair: 1 within one lease" in page
    assert "only B has it" in page
    assert "<td>other/&lt;b&gt; tok/s</td>" in page
