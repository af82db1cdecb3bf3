"""The page of a night: one self-contained HTML file."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from bench.errors import UnreadableResultError, UsageError
from nights.durable import write_text
from warehouse.lake.bucket.filesystem import lake_files
from warehouse.lake.database import opened_once, these_nights_alone
from warehouse.lake.lake import VALIDATION, writing
from warehouse.lake.query import ask
from warehouse.lake.repeat_history import read_precision
from warehouse.report.checks import EXPECTATIONS, checks_html, write_docs
from warehouse.report.events import Address, feed_html, no_address
from warehouse.report.figures import Picture, csv_of, drawn, save_script
from warehouse.report.markup import ICON, NOTHING, document, joined, page_links, part, shown, table_html
from warehouse.report.night.pictures_of import pictures_of
from warehouse.report.night.sentence import sentence
from warehouse.report.night.workloads import workload_rows
from warehouse.report.night_line import night_line
from warehouse.report.night_trends import SAID, NightTrends, read_trends
from warehouse.report.simulated import demo_note
from warehouse.rows.records import read_night
from warehouse.rows.run_folder import nights
from warehouse.schema.columns import PARTITION
from warehouse.schema.row import Row
from warehouse.trends.of_night import changes_of_night, verdicts_of

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
TUNING = """
SELECT * EXCLUDE (night, suite, is_over) FROM tuning WHERE night = ? ORDER BY place, candidate <> 'own', candidate
"""
OVERHEADS = """
SELECT scenario, answer_form, metric, value, free_value, ratio, repeats, free_repeats
FROM answer_overheads
WHERE night = ?
"""
_LINES = Markup("<p class='line'>{}</p><p>{}. Suite <b>{}</b>, {}.</p>")
_QUIET = Markup("<p>Nothing changed, every planned run was measured, and no check failed.</p>")
_FILES = Markup(
    "<p>The run folders are the source; <code>lake/&lt;table&gt;/night={night}/part-0.parquet</code> and "
    "<code>warehouse.duckdb</code> are generated from them.</p><ul>{runs}</ul>"
)
DOUBTED = frozenset({"FAIL", "WARN"})
JUDGED = ("series", "metric", "judgement", "effect_pct", "ci_lo", "ci_hi", "min_effect_pct", "mde_pct", "reason")


@dataclass(frozen=True)
class _Content:
    """The content of a night's page."""

    night: str
    sentence: str
    line: str
    pictures: Sequence[tuple[str, Markup]]
    trends: Markup
    measurements: list[Row]
    said: list[Row]
    changes: list[Row]
    results: list[Row]
    findings: list[Row]
    repeats: list[Row]
    searches: list[Row]
    probes: list[Row]
    tuning: list[Row]
    precision: list[Row]
    overheads: list[Row]
    failures: list[Row]
    controls: list[Row]
    costs: list[Row]
    validation: dict[str, Any] | None
    expectations: list[Row]


def write_report(data: Path, night: str) -> Path:
    """Write the page of a loaded night and the index of all pages; returns the page's path.

    Raises UsageError if the night is not loaded, LoadIntoWarehouseError if the page cannot be written.
    """
    page = data.absolute() / "reports" / f"{night}.html"
    home = Markup("<nav aria-label='Site'><a href='index.html'>All nights</a></nav>")
    script = Markup("<script>{}</script>").format(Markup(save_script()))  # noqa: S704 - our own file
    with writing(page):
        docs = write_docs(data, night, page.parent)
        body = home + demo_note(data) + night_body(data, night, drawn, docs=docs) + script
        write_text(page, document(f"Night {night}", body, ICON))
        written = sorted((path.stem for path in page.parent.glob("*.html") if path.stem != "index"), reverse=True)
        write_text(page.parent / "index.html", _index_html(written))
    return page


def night_body(
    data: Path,
    night: str,
    picture: Picture,
    address: Address = no_address,
    docs: Sequence[str] = (),
    trends: NightTrends | None = None,
) -> Markup:
    """The page of a loaded night without its frame; `picture` draws its trends, `address` leads to a series.

    `docs` are the addresses of great-expectations' own pages of it, `trends` what was read for the pages of several
    nights.

    Raises UsageError if the night is not loaded.
    """
    with opened_once(data):
        drawn_trends = (trends or read_trends(data, [night])).html(night, picture)
        with these_nights_alone(data, [night]):
            return _body(_content(data, night, drawn_trends), address, docs)


def _content(data: Path, night: str, trends: Markup) -> _Content:

    def of_night(sql: str) -> list[Row]:
        return ask(data, sql, (night,)).dicts()

    measurements = of_night('SELECT * FROM standing WHERE night = ? ORDER BY "order", run_id')
    validation = lake_files(data) / VALIDATION / f"{PARTITION}={night}" / "validation.json"
    if not measurements and not validation.is_file():
        known = ", ".join(nights(data)[-3:]) or "none yet"
        raise UsageError(f"the night {night!r} is not loaded, so it has no report; latest nights: {known}")
    return _Content(
        night=night,
        sentence=sentence(data, night),
        line=night_line(data, night),
        pictures=tuple(pictures_of(data, night)),
        trends=trends,
        measurements=measurements,
        said=verdicts_of(data, night),
        changes=changes_of_night(data, night),
        results=of_night("SELECT * EXCLUDE (night) FROM results WHERE night = ?"),
        findings=of_night(
            "SELECT scenario, repeat, code, family, severity, status, observed, message, scenario_id FROM findings "
            "JOIN (SELECT night, run_id, scenario FROM measurements) AS runs USING (night, run_id) "
            "WHERE night = ? AND severity <> 'info' ORDER BY severity, scenario, repeat, code"
        ),
        repeats=of_night(REPEATS),
        searches=of_night("SELECT * EXCLUDE (night) FROM searches WHERE night = ?"),
        probes=of_night(PROBES),
        tuning=of_night(TUNING),
        precision=_precision(data, night),
        overheads=of_night(OVERHEADS),
        failures=of_night("SELECT * EXCLUDE (night) FROM failures WHERE night = ?"),
        controls=of_night("SELECT * EXCLUDE (night) FROM controls WHERE night = ?"),
        costs=of_night("SELECT * FROM night_costs WHERE night = ?"),
        validation=json.loads(validation.read_bytes()) if validation.is_file() else None,
        expectations=of_night(EXPECTATIONS),
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


def _body(content: _Content, address: Address, docs: Sequence[str]) -> Markup:
    """The page's body. A quiet night among others is folded, so that it fits a screen."""
    first = content.measurements[0] if content.measurements else {}
    counts = _verdict_counts(content.measurements)
    is_quiet = _is_quiet(content)
    is_folded = is_quiet and bool(content.trends)
    lines = _LINES.format(content.sentence, content.line, shown(first.get("suite")), counts)
    none = _QUIET if is_quiet else NOTHING
    to_read = joined(part(title, body, is_open=not is_folded) for title, body in _to_read(content, address) if body)
    rest = joined(part(title, body, is_open=False, level=3) for title, body in _recorded(content, docs) if body)
    return lines + none + to_read + part("Everything else that was recorded", rest, is_open=False)


def _is_quiet(content: _Content) -> bool:
    """Whether nothing changed, nothing failed and nothing is in doubt."""
    doubted = [row for row in content.findings if row["status"] in DOUBTED]
    said = [row for row in content.said if row["judgement"] in SAID]
    return not (content.changes or content.failures or doubted or said or _unmet(content))


def _unmet(content: _Content) -> list[Row]:
    return [row for row in content.expectations if row["status"] in DOUBTED]


def _to_read(content: _Content, address: Address) -> Iterator[tuple[str, Markup]]:
    """What a reader looks for first."""
    yield "Changes", feed_html(content.changes, address)
    yield from content.pictures
    yield "Trends", content.trends
    yield "Results", table_html(_known(content.results)) + csv_of(f"{content.night}-results", content.results)
    yield "Search for flags", table_html(_known(content.tuning))
    yield "Numbers of single kinds of workload", table_html(workload_rows(content.measurements))
    yield "Overhead of answers with a form", table_html(content.overheads)
    yield "Failures", table_html(content.failures) or Markup("<p>Every planned run was measured.</p>")
    yield "Findings", table_html(content.findings) or Markup("<p>No findings.</p>")
    yield "Expectations that do not hold", table_html(_unmet(content))


def _recorded(content: _Content, docs: Sequence[str]) -> Iterator[tuple[str, Markup]]:
    """What else was recorded."""
    yield "Verdicts on series", table_html(_judged(content.said))
    yield "Sweeps and searches", table_html(content.searches)
    yield "Probes", table_html(content.probes)
    yield "Repeats", table_html(content.repeats)
    yield "Planned repeats", table_html(content.precision)
    yield "Control", table_html(content.controls)
    yield "Plan", table_html([_plan_row(row) for row in content.measurements])
    yield "Requested and found", table_html([_asked_found_row(row) for row in content.measurements])
    yield "Host and engine", _host_tables(content.measurements)
    yield "Cost", table_html(content.costs)
    yield "Checks by great-expectations", checks_html(docs, content.expectations, content.validation)
    yield "Files", _files_html(content)


def _index_html(written: Sequence[str]) -> str:
    return document("Nights", page_links(written))


def _verdict_counts(rows: Sequence[Row]) -> str:
    verdicts = sorted({row["verdict"] for row in rows})
    counts = [f"{sum(row['verdict'] == verdict for row in rows)} {verdict}" for verdict in verdicts]
    return f"{len(rows)} runs: {', '.join(counts)}" if rows else "no runs"


def _known(rows: Sequence[Row]) -> list[Row]:
    """The rows without the columns that none of them has a value in, and without ids; the CSV has all."""
    names = [name for name in (rows[0] if rows else ()) if any(row[name] is not None for row in rows)]
    return [{name: row[name] for name in names if name != "scenario_id"} for row in rows]


def _judged(said: Sequence[Row]) -> list[Row]:
    """The verdicts on series with enough nights before them; the line above counts the others."""
    return [{name: row[name] for name in JUDGED} for row in said if row["judgement"] != "insufficient"]


def _plan_row(row: Row) -> Row:
    names = ("order", "scenario", "repeat", "arrivals", "concurrency_asked", "request_rate_per_s_asked", "isl", "osl")
    return {name: row[name] for name in (*names, "request_count", "warmup_count", "driver", "outcome")}


def _asked_found_row(row: Row) -> Row:
    pairs = {name: row[name] for pair in ASKED_FOUND for name in pair}
    return {"scenario": row["scenario"], "repeat": row["repeat"], **pairs, "verdict": row["verdict"]}


def _host_tables(rows: Sequence[Row]) -> Markup:
    """Host and engine of the runs, each combination once."""
    facts = {json.dumps([row[name] for name in HOST]): row for row in rows if row["host"] is not None}
    return joined(table_html([{"fact": name, "found": row[name]} for name in HOST]) for row in facts.values())


def _files_html(content: _Content) -> Markup:
    runs = joined(Markup("<li><code>runs/{}/</code></li>").format(row["run_id"]) for row in content.measurements)
    return _FILES.format(night=content.night, runs=runs)
