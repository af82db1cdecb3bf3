"""The newest version of each engine against the one before it, as a part of the compare page."""

from pathlib import Path

from markupsafe import Markup

from nights.durable import write_if_changed
from warehouse.report.figures import csv_link, csv_text
from warehouse.report.markup import joined, section, sql_html
from warehouse.site.comparison import comparison_html, flat
from warehouse.trends.own_series import SOURCE
from warehouse.trends.releases import METRICS, VERSIONS, releases

_FILES = {"releases": "pairs", "release_means": "geometric_means", "releases_refused": "refused"}
_CSV = Markup(" ").join(csv_link(f"data/{name}.csv", words.replace("_", " ")) for name, words in _FILES.items())
_NO_PAIR = Markup("<p>No engine has nights of two versions yet.</p>")
MEASURED = f"The metrics are {', '.join(METRICS)}. "


def releases_html(data: Path, out: Path) -> Markup:
    """A section for each engine that has two versions; it writes their CSV."""
    answers = [(one, one.comparison.answer()) for one in releases(data)]
    for name, part in _FILES.items():
        rows = [
            {"version_before": answer["a"], "version_newest": answer["b"], **flat(row)}
            for _, answer in answers
            for row in answer[part]
        ]
        write_if_changed(out / "data" / f"{name}.csv", csv_text(rows))
    if not answers:
        return section("Engine versions", _NO_PAIR)
    return joined(
        comparison_html(
            f"{one.engine or one.source}: {one.newest} against {one.before}",
            answer,
            MEASURED if one.source == SOURCE else "",
            _CSV + sql_html(VERSIONS),
        )
        for one, answer in answers
    )
