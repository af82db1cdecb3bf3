"""The site compares nights, images and machines as `nightbench compare` does, and says what a side lacks."""

import csv
from datetime import UTC, datetime
from pathlib import Path

from markupsafe import Markup

from tests.warehouse.simulated_lake import write
from warehouse.lake.database import build_warehouse
from warehouse.site.comparison import comparison_html
from warehouse.site.comparisons import write_comparisons
from warehouse.site.names import page_name
from warehouse.trends.compare import compare
from warehouse.trends.releases import METRICS
from warehouse.trends.usual_pairs import usual_pairs

COLUMNS = ("series", "metric", "verdict", "effect_pct", "ci_lo", "ci_hi", "p")


def run_row(night: str, machine: str, image: str, suite: str = "s") -> dict[str, object]:
    at = datetime.strptime(night, "%Y-%m-%d").replace(tzinfo=UTC)
    named = {"night": night, "run_id": f"{night}/{machine}", "suite": suite, "machine": machine, "image_digest": image}
    more = {"scenario_id": "chat", "scenario": "chat", "repeat": 0, "model": "m", "engine": "vllm", "image": "x"}
    return named | more | {"outcome": "measured", "verdict": "accepted", "started_at": at}


def test_a_page_of_two_nights_says_what_the_command_says(versions: Path, tmp_path: Path) -> None:
    links = write_comparisons(versions, tmp_path, None)

    newest, before = "suite=synthetic,night=2026-03-06", "suite=synthetic,night=2026-03-05"
    found = compare(versions, before, newest).answer()
    page = tmp_path / "compare" / f"{page_name('compare', 'synthetic the night before')}.html"
    with page.with_suffix(".csv").open() as file:
        pairs = list(csv.DictReader(file))
    assert pairs
    assert [{name: row[name] for name in COLUMNS} for row in pairs] == [
        {name: str(row[name]) for name in COLUMNS} for row in found["pairs"] if row["metric"] in METRICS
    ]
    assert f"<h2>{newest} against {before}</h2>" in page.read_text()
    assert f"<a href='compare/{page.name}'>synthetic: the newest night against the night before</a>" in links


def test_nights_images_and_machines_of_the_last_month_are_paired(tmp_path: Path) -> None:
    nights = {"2026-01-20": "i1", "2026-02-20": "i2", "2026-02-27": "i2", "2026-03-01": "i3"}
    for night, image in nights.items():
        machines = ("a", "b") if night > "2026-02-01" else ("a", "old")
        write(tmp_path / "lake", "measurements", night, [run_row(night, machine, image) for machine in machines])
    write(tmp_path / "lake", "measurements", "2025-11-01", [run_row("2025-11-01", "a", "i0", "forgotten")])
    build_warehouse(tmp_path)

    pairs = {pair.name: (pair.one.text, pair.other.text) for pair in usual_pairs(tmp_path)}

    newest = "suite=s,night=2026-03-01"
    assert pairs == {
        "s the night before": ("suite=s,night=2026-02-27", newest),
        "s 7 days before": ("suite=s,night=2026-02-20", newest),
        "s 30 days before": ("suite=s,night=2026-01-20", newest),
        "vllm images": ("engine=vllm,image=i2", "engine=vllm,image=i3"),
        "machines a b": ("machine=a", "machine=b"),
    }


def test_an_empty_warehouse_has_no_pages_of_pairs(tmp_path: Path) -> None:
    build_warehouse(tmp_path)

    assert write_comparisons(tmp_path, tmp_path / "site", None) == ""


def test_what_a_side_lacks_stands_in_the_page_with_its_reason(versions: Path) -> None:
    answer = compare(versions, "night=2026-03-05", "night=2026-03-06").answer()
    lacks = {"side": "B", "series": "m/<b>", "metrics": 12, "why": "2 rejected: the host was busy"}

    page = comparison_html("title", answer | {"missing": [lacks]}, "", Markup("files"))

    assert "<h3>Missing on one side</h3><p>A is night=2026-03-05, B is night=2026-03-06.</p>" in page
    assert "<td>m/&lt;b&gt;</td>" in page
    assert "2 rejected: the host was busy" in page
    assert "Missing on one side" not in comparison_html("title", answer, "", Markup("files"))
