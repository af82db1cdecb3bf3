"""The requests of each run over its time: how many were in flight, how long the first token took, and what failed."""

from itertools import groupby
from pathlib import Path

from markupsafe import Markup

from warehouse.report.markup import NOTHING, details, joined
from warehouse.report.pictures import Answer, asked, picture_html
from warehouse.report.plot import WIDTH, Scale, number, picture, scale, x_axis, y_axis
from warehouse.schema.row import Row

RUNS = 12  # that are drawn: the first repeat of each scenario before the second
_BINS = """
WITH chosen AS (
    SELECT run_id, scenario, "repeat", "order" AS place FROM measurements
    WHERE night = {{ night }} AND outcome = 'measured' AND is_control IS NOT TRUE
        AND run_id IN (SELECT run_id FROM requests WHERE night = {{ night }})
    ORDER BY "repeat", place LIMIT 12
), seen AS (
    SELECT run_id, outcome, ttft_ms, send_s, send_s + coalesce(e2el_ms, 0) / 1000 AS end_s
    FROM requests JOIN chosen USING (run_id) WHERE night = {{ night }} AND send_s IS NOT NULL
), spans AS (
    SELECT run_id, min(send_s) AS begin_s, greatest(max(end_s) - min(send_s), 1e-9) / 30 AS width_s
    FROM seen GROUP BY run_id
), sent AS (
    SELECT run_id, least(floor((send_s - begin_s) / width_s), 29)::INTEGER AS bin, count(*) AS sent,
        count(*) FILTER (outcome NOT IN ('ok', 'cancelled_as_planned')) AS failed,
        median(ttft_ms) AS ttft_p50_ms, max(ttft_ms) AS ttft_max_ms
    FROM seen JOIN spans USING (run_id) GROUP BY ALL
), ended AS (
    SELECT run_id, least(floor((end_s - begin_s) / width_s), 29)::INTEGER AS bin, count(*) AS ended
    FROM seen JOIN spans USING (run_id) GROUP BY ALL
)
SELECT scenario, "repeat", round(bin * width_s, 3) AS from_s,
    (sum(coalesce(sent, 0)) OVER so_far - sum(coalesce(ended, 0)) OVER so_far)::INTEGER AS in_flight,
    coalesce(sent, 0) AS sent, coalesce(failed, 0) AS failed, ttft_p50_ms, ttft_max_ms
FROM chosen JOIN spans USING (run_id) CROSS JOIN (SELECT unnest(range(30))::INTEGER AS bin)
LEFT JOIN sent USING (run_id, bin) LEFT JOIN ended USING (run_id, bin)
WINDOW so_far AS (PARTITION BY run_id ORDER BY bin)
ORDER BY "repeat", place, bin
"""
LEFT, TOP, MIDDLE, GAP, BOTTOM = 58, 30, 120, 42, 252
_STEPS = Markup('<path d="{}" class="line"/>')
_MEDIAN = Markup('<circle cx="{x:.1f}" cy="{y:.1f}" r="3" class="bar"/>')
_RANGE = Markup('<line x1="{x:.1f}" x2="{x:.1f}" y1="{y:.1f}" y2="{top:.1f}" class="thin"/>')
_FAILED = Markup('<text x="{x:.1f}" y="{y}" text-anchor="middle" class="failure">&times;</text>')
_PANELS = Markup("<div class='panels'>{}</div>")
_LEAD = Markup(
    "<p>Above: requests in flight at the end of each thirtieth of the run, a cross where some of those sent failed. "
    "Below: median time to first token of the requests sent then, with a line up to the longest.{}</p>"
)


def requests_html(data: Path, night: str) -> Markup:
    """A picture for each run; a sentence where no request was recorded."""
    answer = asked(data, night, _BINS)
    runs = [list(rows) for _, rows in groupby(answer.rows, key=lambda row: (row["scenario"], row["repeat"]))]
    if not runs:
        return Markup("<p>No measured run has its requests in the warehouse.</p>")
    limit = f" At most {RUNS} runs are drawn." if len(runs) == RUNS else ""
    pictures = [(rows[0]["repeat"], _run(answer, rows, at)) for at, rows in enumerate(runs)]
    first = joined(picture for repeat, picture in pictures if repeat == runs[0][0]["repeat"])
    others = joined(picture for repeat, picture in pictures if repeat != runs[0][0]["repeat"])
    return _LEAD.format(limit) + _PANELS.format(first) + details("The other repeats", others and _PANELS.format(others))


def _run(answer: Answer, rows: list[Row], at: int) -> Markup:
    width_s = rows[1]["from_s"] - rows[0]["from_s"]
    along = Scale(0.0, len(rows) * width_s or 1.0, LEFT, WIDTH - 12)
    flight = scale([row["in_flight"] for row in rows], MIDDLE, TOP)
    wait = scale([row["ttft_max_ms"] or 0.0 for row in rows], BOTTOM, MIDDLE + GAP)
    axes = (
        y_axis(flight, LEFT, WIDTH - 12, "requests in flight")
        + y_axis(wait, LEFT, WIDTH - 12, "time to first token (ms)")
        + x_axis(along, MIDDLE + GAP, BOTTOM, "seconds since the first request")
    )
    steps = _STEPS.format("".join(_step(row, at, along, flight, width_s) for at, row in enumerate(rows)))
    dots = joined(_dot(row, along.at(row["from_s"] + width_s / 2), wait) for row in rows)
    name = f"{rows[0]['scenario']}, repeat {rows[0]['repeat']}"
    own = Answer(answer.night, answer.query, rows)
    return picture_html(own, f"requests-{at + 1}", f"{name}: requests over time (s)", _said(rows),
                        picture(BOTTOM + 38, axes, steps, dots))  # fmt: skip


def _step(row: Row, at: int, along: Scale, flight: Scale, width_s: float) -> str:
    begin, end, y = along.at(row["from_s"]), along.at(row["from_s"] + width_s), flight.at(row["in_flight"])
    return f"{'L' if at else 'M'}{begin:.1f} {y:.1f}L{end:.1f} {y:.1f}"


def _dot(row: Row, x: float, wait: Scale) -> Markup:
    failed = _FAILED.format(x=x, y=TOP + 10) if row["failed"] else NOTHING
    if row["ttft_p50_ms"] is None:
        return failed
    y, top = wait.at(row["ttft_p50_ms"]), wait.at(row["ttft_max_ms"])
    return failed + _RANGE.format(x=x, y=y, top=top) + _MEDIAN.format(x=x, y=y)


def _said(rows: list[Row]) -> str:
    sent, failed = sum(row["sent"] for row in rows), sum(row["failed"] for row in rows)
    most, longest = max(row["in_flight"] for row in rows), max(row["ttft_max_ms"] or 0.0 for row in rows)
    return (
        f"{sent} requests were sent and {failed} failed; at most {most} were in flight, "
        f"and the longest time to first token was {number(longest)} ms."
    )
