"""The newest version of each engine against the one before it, as a part of the compare page."""

import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from bench.trends.night_judge import SUSPECT_P
from nights.durable import write_if_changed
from warehouse.report.figures import csv_link, csv_text
from warehouse.report.markup import NOTHING, code_block, details, joined, section, sql_html, table_html
from warehouse.schema.row import Row
from warehouse.trends.compare import few_values
from warehouse.trends.own_series import SOURCE
from warehouse.trends.releases import METRICS, VERSIONS, Release, releases

SHOWN = 50  # rows of a table; the CSV has all
_FILES = {"releases": "pairs", "release_means": "geometric_means", "releases_refused": "refused"}
_CHANGED = frozenset({"loss", "gain", "changed"})
_CSV = Markup(" ").join(csv_link(f"data/{name}.csv", words.replace("_", " ")) for name, words in _FILES.items())
_NO_PAIR = Markup("<p>No engine has nights of two versions yet.</p>")
_NO_CHANGE = Markup("<p>No change is confirmed.</p>")
_MEANS = Markup(
    "<h3>Means, best and worst</h3><p>Geometric mean of the ratios; above 1, the newest version is better.</p>{}"
)


def releases_html(data: Path, out: Path) -> Markup:
    """A section for each engine that has two versions; it writes their CSV."""
    answers = [(one, one.comparison.answer()) for one in releases(data)]
    for name, part in _FILES.items():
        rows = [
            {"version_before": answer["a"], "version_newest": answer["b"], **_flat(row)}
            for _, answer in answers
            for row in answer[part]
        ]
        write_if_changed(out / "data" / f"{name}.csv", csv_text(rows))
    if not answers:
        return section("Engine versions", _NO_PAIR)
    return joined(_release_html(one, answer) for one, answer in answers)


def _release_html(release: Release, answer: Mapping[str, Any]) -> Markup:
    name = release.engine or release.source
    rows = [_shown(pair) for pair in answer["pairs"]]
    changed = [row for row in rows if row["verdict"] in _CHANGED]
    others = [row for row in rows if row["verdict"] not in _CHANGED]
    return section(
        f"{name}: {release.newest} against {release.before}",
        Markup("<p>{}. {}</p>").format(answer["summary"], _rule(release))
        + (_table(changed) or _NO_CHANGE)
        + _means_html(answer["geometric_means"])
        + details(f"{len(others)} pairs without a confirmed change", _table(others))
        + _refused_html(answer["refused"])
        + Markup("<div class='more'>CSV: {} {}</div>").format(_CSV, _how_html(answer)),
    )


def _rule(release: Release) -> str:
    """When a change is confirmed, and which metrics are compared."""
    metrics = f"The metrics are {', '.join(METRICS)}. " if release.source == SOURCE else ""
    return (
        f"A change is confirmed where p < {SUSPECT_P}, it is at least as large as its threshold, and it stands "
        f"among all pairs. {metrics}Intervals are of 95 %."
    )


def _shown(pair: Mapping[str, Any]) -> Row:
    """One pair as a row of the page."""
    differs = "; ".join(
        f"{name}: {few_values(one)} → {few_values(other)}"
        for name, (one, other) in pair["differs"].items()
        if name != "engine_version"
    )
    return {
        **{name: pair[name] for name in ("verdict", "series", "metric", "effect_pct", "ci_lo", "ci_hi")},
        "threshold_pct": pair["min_effect_pct"],
        "leases": f"{pair['a_leases']} and {pair['b_leases']}",
        **{name: pair[name] for name in ("a", "b", "mde_pct")},
        "differs also": differs or None,
    }


def _means_html(means: Sequence[Row]) -> Markup:
    """The geometric means with the best and the worst cell of each metric; nothing where no pair has an interval."""
    return _MEANS.format(table_html(means)) if means else NOTHING


def _refused_html(refused: Sequence[Row]) -> Markup:
    """What is not compared, by its reason."""
    counts = Counter(row["reason"] for row in refused)
    listed = [{"reason": reason, "series": count} for reason, count in counts.most_common(SHOWN)]
    return details(f"{len(refused)} series not compared, by reason", table_html(listed) + _table(refused))


def _table(rows: Sequence[Row]) -> Markup:
    left = len(rows) - SHOWN
    more = Markup("<p>{} more are in the CSV.</p>").format(left) if left > 0 else NOTHING
    return table_html(rows[:SHOWN]) + more


def _how_html(answer: Mapping[str, Any]) -> Markup:
    """The command that compares every metric, and the query that finds the versions."""
    command = shlex.join(["nightbench", "compare", answer["a"], answer["b"]])
    return details("Command", code_block(command)) + sql_html(VERSIONS)


def _flat(row: Mapping[str, Any]) -> Row:
    """A row whose values are single ones, as a CSV needs them."""
    return {name: _joined(value.items()) if isinstance(value, dict) else value for name, value in row.items()}


def _joined(pairs: Iterable[tuple[str, tuple[str, str]]]) -> str:
    return "; ".join(f"{name}: {one} -> {other}" for name, (one, other) in pairs)
