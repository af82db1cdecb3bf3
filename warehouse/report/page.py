"""The page of a night: one self-contained HTML file."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from pathlib import Path
from typing import Any

from bench.errors import UnreadableResultError, UsageError
from warehouse.lake.bucket.filesystem import lake_files
from warehouse.lake.database import open_warehouse
from warehouse.lake.durable import replace_text
from warehouse.lake.lake import writing
from warehouse.lake.query import ask
from warehouse.lake.repeat_history import read_precision
from warehouse.report.chart import Bar, percentile_chart
from warehouse.report.style import STYLE
from warehouse.rows.records import read_night
from warehouse.rows.run_folder import nights
from warehouse.schema.columns import PARTITION
from warehouse.schema.row import Row
from warehouse.trends.of_night import summary_of, verdicts_of

# Requested and found values side by side.
ASKED_FOUND = (
    ("engine_version_asked", "engine_version_found"),
    ("request_count", "completed"),
    ("concurrency_asked", "concurrency_achieved"),
)
HOST = (
    *("host", "kernel", "cpu_model", "cpu_count", "gpus", "gpu_driver", "driver", "driver_version"),
    *("engine", "engine_version_found"),
    *("engine_build", "engine_flags", "image_digest", "model", "model_source", "model_revision", "model_sha256"),
    *("precision", "kv_cache_tokens", "cold_start_s"),
)

REPEATS = """
SELECT scenario, metric, repeats, leases, mean, low, high, half_width, spread_within, spread_between
FROM night_repeats
WHERE night = ? AND repeats > 1 AND metric IN ('output_throughput_tok_per_s', 'ttft_p50_ms', 'tpot_p50_ms')
ORDER BY scenario, scenario_id, metric
"""
PROBES = """
SELECT search, repeat, concurrency, request_rate_per_s, status, request_count, completed, within_slo,
       output_throughput_tok_per_s, ttft_p99_ms, e2el_p99_ms, scenario_id, reason
FROM search_probes
WHERE night = ?
ORDER BY search, repeat, probe
"""
# What this night said, and what later nights said of it.
CHANGES = """
SELECT event_id, state, series, metric, last_good, first_bad, until, effect_pct, ci_lo, ci_hi, direction, why, note
FROM changes
WHERE $1 IN (night, first_bad)
ORDER BY direction = 'better', event_id, series, metric
"""
JUDGED = ("series", "metric", "judgement", "effect_pct", "ci_lo", "ci_hi", "min_effect_pct", "mde_pct", "reason")
SENTENCE_SPACES_MIN = 4  # cells with at least this many spaces get a wider column


@dataclass(frozen=True)
class _Content:
    """The content of a night's page."""

    night: str
    measurements: list[Row]
    said: list[Row]
    changes: list[Row]
    results: list[Row]
    findings: list[Row]
    repeats: list[Row]
    searches: list[Row]
    probes: list[Row]
    precision: list[Row]
    failures: list[Row]
    controls: list[Row]
    costs: list[Row]
    validation: dict[str, Any] | None


def write_report(data: Path, night: str) -> Path:
    """Write the page of a loaded night and the index of all pages; returns the page's path.

    Raises UsageError if the night is not loaded, LoadIntoWarehouseError if the page cannot be written.
    """
    page = data.absolute() / "reports" / f"{night}.html"
    text = night_page(data, night)
    with writing(page):
        replace_text(page, text)
        written = sorted((path.stem for path in page.parent.glob("*.html") if path.stem != "index"), reverse=True)
        replace_text(page.parent / "index.html", _index_html(written))
    return page


def night_page(data: Path, night: str, home: str = "index.html") -> str:
    """The page of a loaded night as HTML, with a link to the page of all nights. Raises UsageError if not loaded."""
    with open_warehouse(data):  # while it is open, each query opens it at no cost
        return night_html(_content(data, night), home)


def _content(data: Path, night: str) -> _Content:
    def of_night(sql: str) -> list[Row]:
        return ask(data, sql, (night,)).dicts()

    measurements = of_night('SELECT * FROM standing WHERE night = ? ORDER BY "order", run_id')
    validation = lake_files(data) / "validation" / f"{PARTITION}={night}" / "validation.json"
    if not measurements and not validation.is_file():
        known = ", ".join(nights(data)[-3:]) or "none yet"
        raise UsageError(f"the night {night!r} is not loaded, so it has no report; latest nights: {known}")
    return _Content(
        night=night,
        measurements=measurements,
        said=verdicts_of(data, night),
        changes=of_night(CHANGES),
        results=of_night("SELECT * EXCLUDE (night) FROM results WHERE night = ?"),
        findings=of_night(
            "SELECT run_id, code, family, severity, status, observed, message FROM findings "
            "WHERE night = ? AND severity <> 'info' ORDER BY severity, run_id, code"
        ),
        repeats=of_night(REPEATS),
        searches=of_night("SELECT * EXCLUDE (night) FROM searches WHERE night = ?"),
        probes=of_night(PROBES),
        precision=_precision(data, night),
        failures=of_night("SELECT * EXCLUDE (night) FROM failures WHERE night = ?"),
        controls=of_night("SELECT * EXCLUDE (night) FROM controls WHERE night = ?"),
        costs=of_night("SELECT * FROM night_costs WHERE night = ?"),
        validation=json.loads(validation.read_bytes()) if validation.is_file() else None,
    )


def _precision(data: Path, night: str) -> list[Row]:
    """What the plan chose and what the repeats reached, of each scenario and metric; none where no plan chose."""
    try:
        planned = read_night((data / "runs" / night / "night.json").read_bytes())
    except (FileNotFoundError, UnreadableResultError):
        return []
    reasons = {one.scenario: one for one in planned.repeats}
    reached = read_precision(data, planned).reached
    return [one.model_dump() | {"planned": reasons[one.scenario].repeats, "why": reasons[one.scenario].reason}
            for one in reached]  # fmt: skip


def night_html(content: _Content, home: str) -> str:
    """The page as HTML; all values are escaped."""
    first = content.measurements[0] if content.measurements else {}
    title = f"Night {content.night}"
    suite = f"<p>Suite <b>{_shown(first.get('suite'))}</b>, {_verdict_counts(content.measurements)}.</p>"
    sections = (
        *([section("Changes", table_html(content.changes))] if content.changes else []),
        section(
            "Results",
            table_html(content.results) + _charts([row for row in content.measurements if not row["is_control"]]),
        ),
        *([section("Sweeps and searches", table_html(content.searches))] if content.searches else []),
        *([section("Probes", table_html(content.probes))] if content.probes else []),
        *([section("Repeats", table_html(content.repeats))] if content.repeats else []),
        *([section("Planned repeats", table_html(content.precision))] if content.precision else []),
        *([section("Control", table_html(content.controls))] if content.controls else []),
        *([section("Verdicts on series", table_html(judged))] if (judged := _judged(content.said)) else []),
        section("Failures", table_html(content.failures) or "<p>Every planned run was measured.</p>"),
        section("Findings", table_html(content.findings) or "<p>No findings.</p>"),
        section("Plan", table_html([_plan_row(row) for row in content.measurements])),
        section("Requested and found", table_html([_asked_found_row(row) for row in content.measurements])),
        section("Host and engine", _host_tables(content.measurements)),
        section("Cost", table_html(content.costs)),
        section("Checks by great-expectations", _validation_html(content.validation)),
        section("Files", _files_html(content)),
    )
    line = f"<p>{escape(summary_of(content.said))}.</p>" if content.said else ""
    return document(title, f"<p><a href='{home}'>all nights</a></p>{suite}{line}{''.join(sections)}")


def document(title: str, body: str, head: str = "") -> str:
    """A whole page of this look, which loads nothing from elsewhere."""
    return (
        f"<!doctype html><html lang='en'><head><meta charset='utf-8'><title>{escape(title)}</title>"
        f"<meta name='viewport' content='width=device-width'><style>{STYLE}</style>{head}</head>"
        f"<body><main><h1>{escape(title)}</h1>{body}</main></body></html>\n"
    )


def _index_html(written: Sequence[str]) -> str:
    links = "".join(f"<li><a href='{escape(night)}.html'>{escape(night)}</a></li>" for night in written)
    return document("Nights", f"<ul>{links}</ul>")


def section(title: str, body: str) -> str:
    """A part of a page under its heading."""
    return f"<section><h2>{escape(title)}</h2>{body}</section>"


def _verdict_counts(rows: Sequence[Row]) -> str:
    verdicts = sorted({row["verdict"] for row in rows})
    counts = [f"{sum(row['verdict'] == verdict for row in rows)} {_shown(verdict)}" for verdict in verdicts]
    return f"{len(rows)} runs: {', '.join(counts)}" if rows else "no runs"


def table_html(rows: Sequence[Row]) -> str:
    """Rows as an HTML table, "" without rows; numbers are right-aligned, verdicts and statuses coloured."""
    if not rows:
        return ""
    # A long name may break after an underscore, or it would push the columns behind it out of sight.
    head = "".join(f"<th scope='col'>{escape(name).replace('_', '_<wbr>')}</th>" for name in rows[0])
    body = "".join(f"<tr>{''.join(_cell(name, value) for name, value in row.items())}</tr>" for row in rows)
    return f"<div class='wide' tabindex='0'><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"


def _cell(name: str, value: Any) -> str:
    kind = _kind(name, value)
    return f"<td class='{kind}'>{_shown(value)}</td>" if kind else f"<td>{_shown(value)}</td>"


def _kind(name: str, value: Any) -> str | None:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return "number"
    if name in ("verdict", "published_verdict", "status", "severity", "outcome") and value is not None:
        return escape(str(value).lower())
    return "sentence" if isinstance(value, str) and value.count(" ") >= SENTENCE_SPACES_MIN else None


def _shown(value: Any) -> str:
    if value is None:
        return "<span class='missing'>&ndash;</span>"
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"  # noqa: PLR2004 - four digits are read at a glance
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S UTC")
    return escape(" ".join(map(str, value)) if isinstance(value, list) else str(value))


def _judged(said: Sequence[Row]) -> list[Row]:
    """The verdicts on series with enough nights before them; the line above counts the others."""
    return [{name: row[name] for name in JUDGED} for row in said if row["judgement"] != "insufficient"]


def _plan_row(row: Row) -> Row:
    names = ("order", "scenario", "repeat", "arrivals", "concurrency_asked", "request_rate_per_s_asked", "isl", "osl")
    return {name: row[name] for name in (*names, "request_count", "warmup_count", "driver", "outcome")}


def _asked_found_row(row: Row) -> Row:
    pairs = {name: row[name] for pair in ASKED_FOUND for name in pair}
    return {"scenario": row["scenario"], "repeat": row["repeat"], **pairs, "verdict": row["verdict"]}


def _host_tables(rows: Sequence[Row]) -> str:
    """Host and engine of the runs, each combination once."""
    facts = {json.dumps([row[name] for name in HOST]): row for row in rows if row["host"] is not None}
    return "".join(table_html([{"fact": name, "found": row[name]} for name in HOST]) for row in facts.values())


def _charts(rows: Sequence[Row]) -> str:
    charts = ""
    for metric, name in (("ttft", "Time to first token"), ("tpot", "Time per output token")):
        bars = [
            Bar(f"{row['scenario']} #{row['repeat']}", row[f"{metric}_p50_ms"], row[f"{metric}_p99_ms"])
            for row in sorted(rows, key=lambda row: (str(row["scenario"]), row["repeat"]))
            if row[f"{metric}_p50_ms"] is not None
        ]
        charts += percentile_chart(f"{name}: bar to p50, line to p99", bars)
    return charts


def _validation_html(validation: dict[str, Any] | None) -> str:
    if validation is None:
        return "<p>The result of the checks was not kept.</p>"
    said = "every check passed" if validation["success"] else "not every check passed"
    rows = [
        {
            "check": check["code"],
            "bound": check["bound"],
            "column": check["column"],
            "low": check["low"],
            "high": check["high"],
            "severity": check["severity"],
            "status": "PASS" if check["success"] else "FAIL" if check["severity"] == "critical" else "WARN",
            "failed rows": check["failed_count"],
            "error": check["error"],
        }
        for check in validation["checks"]
    ]
    return f"<p>Measured runs: {said}.</p>{table_html(rows)}"


def _files_html(content: _Content) -> str:
    runs = "".join(f"<li><code>runs/{_shown(row['run_id'])}/</code></li>" for row in content.measurements)
    lake = f"<code>lake/&lt;table&gt;/night={_shown(content.night)}/part-0.parquet</code>"
    said = f"The run folders are the source; {lake} and <code>warehouse.duckdb</code> are generated from them."
    return f"<p>{said}</p><ul>{runs}</ul>"
