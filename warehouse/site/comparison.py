"""What `nightbench compare` found of two sides, as a section of a page."""

import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from bench.trends.night_judge import SUSPECT_P
from warehouse.report.markup import NOTHING, code_block, details, section, table_html
from warehouse.schema.row import Row
from warehouse.trends.compare import few_values

SHOWN = 50  # rows of a table; the CSV has all
_CHANGED = frozenset({"loss", "gain", "changed"})
_NO_CHANGE = Markup("<p>No change is confirmed.</p>")
_MEANS = Markup("<h3>Means, best and worst</h3><p>Geometric mean of the ratios; above 1, {} is better.</p>{}")
_MISSING = Markup("<h3>Missing on one side</h3><p>A is {}, B is {}.</p>{}")


def comparison_html(title: str, answer: Mapping[str, Any], metrics: str, files: Markup) -> Markup:
    """The section of an answer: confirmed changes first, then means, what a side lacks, and the rest.

    `metrics` says which were compared, where not all were; `files` links what the tables leave out.
    """
    rows = [_shown(pair) for pair in answer["pairs"]]
    changed = [row for row in rows if row["verdict"] in _CHANGED]
    others = [row for row in rows if row["verdict"] not in _CHANGED]
    return section(
        title,
        Markup("<p>{}. {}</p>").format(answer["summary"], _rule(metrics))
        + (_table(changed) or _NO_CHANGE)
        + _means_html(answer)
        + _missing_html(answer)
        + details(f"{len(others)} pairs without a confirmed change", _table(others))
        + _refused_html(answer["refused"])
        + Markup("<div class='more'>CSV: {} {}</div>").format(files, _command(answer)),
    )


def flat(row: Mapping[str, Any]) -> Row:
    """A row whose values are single ones, as a CSV needs them."""
    return {name: _joined(value.items()) if isinstance(value, dict) else value for name, value in row.items()}


def _rule(metrics: str) -> str:
    """When a change is confirmed, and which metrics are compared."""
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


def _means_html(answer: Mapping[str, Any]) -> Markup:
    """The geometric means with the best and the worst cell of each metric; nothing where no pair has an interval."""
    means = answer["geometric_means"]
    return _MEANS.format(answer["b"], table_html(means)) if means else NOTHING


def _missing_html(answer: Mapping[str, Any]) -> Markup:
    missing = answer["missing"]
    return _MISSING.format(answer["a"], answer["b"], _table(missing)) if missing else NOTHING


def _refused_html(refused: Sequence[Row]) -> Markup:
    """What is not compared, by its reason."""
    counts = Counter(row["reason"] for row in refused)
    listed = [{"reason": reason, "series": count} for reason, count in counts.most_common(SHOWN)]
    return details(f"{len(refused)} series not compared, by reason", table_html(listed) + _table(refused))


def _table(rows: Sequence[Row]) -> Markup:
    left = len(rows) - SHOWN
    more = Markup("<p>{} more are in the CSV.</p>").format(left) if left > 0 else NOTHING
    return table_html(rows[:SHOWN]) + more


def _command(answer: Mapping[str, Any]) -> Markup:
    """The command that compares every metric."""
    return details("Command", code_block(shlex.join(["nightbench", "compare", answer["a"], answer["b"]])))


def _joined(pairs: Iterable[tuple[str, tuple[str, str]]]) -> str:
    return "; ".join(f"{name}: {one} -> {other}" for name, (one, other) in pairs)
