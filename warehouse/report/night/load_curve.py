"""Throughput against latency, one point a load, with the intervals of its repeats."""

from pathlib import Path

from markupsafe import Markup

from warehouse.report.markup import NOTHING, joined
from warehouse.report.pictures import Answer, asked, picture_html
from warehouse.report.plot import WIDTH, Scale, number, picture, scale, shortened, text, x_axis, y_axis
from warehouse.schema.row import Row

_LOADS = """
WITH loads AS (
    SELECT scenario_id, any_value(concurrency_asked) AS concurrency_asked,
        any_value(request_rate_per_s_asked) AS request_rate_per_s_asked, min("order") AS place
    FROM measurements WHERE night = {{ night }} AND is_control IS NOT TRUE GROUP BY scenario_id
)
SELECT scenario, concurrency_asked, request_rate_per_s_asked,
    max(repeats) FILTER (metric = 'output_throughput_tok_per_s') AS repeats,
    {% for metric in ("output_throughput_tok_per_s", "ttft_p50_ms", "tpot_p50_ms") %}
    max(mean) FILTER (metric = {{ metric }}) AS {{ metric | name }},
    max(low) FILTER (metric = {{ metric }}) AS {{ (metric ~ "_low") | name }},
    max(high) FILTER (metric = {{ metric }}) AS {{ (metric ~ "_high") | name }},
    {% endfor %}
FROM night_repeats JOIN loads USING (scenario_id)
WHERE night = {{ night }}
GROUP BY scenario, scenario_id, concurrency_asked, request_rate_per_s_asked, place
HAVING count(*) FILTER (metric = 'output_throughput_tok_per_s') > 0
ORDER BY place, scenario
"""
HEIGHT, LEFT, TOP, BOTTOM = 300, 58, 30, 256
_X = "output_throughput_tok_per_s"
_LATENCIES = {"ttft_p50_ms": "Median time to first token", "tpot_p50_ms": "Median time per output token"}
_POINT = Markup('<circle cx="{x:.1f}" cy="{y:.1f}" r="4" class="bar"/>')
_LINE = Markup('<line x1="{:.1f}" x2="{:.1f}" y1="{:.1f}" y2="{:.1f}" class="whisker"/>')
_LEAD = Markup(
    "<p>One point a load, the mean of its accepted repeats; whiskers are 95 % intervals. "
    "Right and down is better.{}</p>"
)


def load_curve_html(data: Path, night: str) -> Markup:
    """A picture for each of two latencies; a sentence where no accepted run has both numbers."""
    answer = asked(data, night, _LOADS)
    pictures = joined(_curve(answer, metric, words) for metric, words in _LATENCIES.items())
    if not pictures:
        return Markup("<p>No accepted run has a throughput and a latency.</p>")
    alone = all(row["repeats"] == 1 for row in answer.rows)
    once = " Each load was accepted once, so that no interval is known." if alone else ""
    return _LEAD.format(once) + Markup("<div class='panels'>{}</div>").format(pictures)


def _curve(answer: Answer, metric: str, words: str) -> Markup:
    rows = [row for row in answer.rows if row[metric] is not None]
    if not rows:
        return NOTHING
    along = scale((row[_X + end] for row in rows for end in _ENDS if row[_X + end]), LEFT, WIDTH - 12)
    up = scale((row[metric + end] for row in rows for end in _ENDS if row[metric + end]), BOTTOM, TOP)
    axes = x_axis(along, TOP, BOTTOM, "output throughput (tok/s)") + y_axis(up, LEFT, WIDTH - 12, f"{words} (ms)")
    points = joined(
        _labelled(row, along.at(row[_X]), up.at(row[metric]), is_above=at % 2 == 0) for at, row in enumerate(rows)
    )
    whiskers = joined(_whiskers(row, metric, along, up) for row in rows)
    said = "; ".join(f"{row['scenario']} {number(row[_X])} tok/s at {number(row[metric])} ms" for row in rows)
    return picture_html(answer, f"load-{metric}", f"{words} (ms) against output throughput (tok/s)", said,
                        picture(HEIGHT, axes, whiskers, points))  # fmt: skip


_ENDS = ("", "_low", "_high")


def _whiskers(row: Row, metric: str, along: Scale, up: Scale) -> Markup:
    """The intervals of both numbers, where repeats give them."""
    x, y = along.at(row[_X]), up.at(row[metric])
    (left, right), (below, above) = ((row[f"{name}_low"], row[f"{name}_high"]) for name in (_X, metric))
    lying = NOTHING if left is None else _LINE.format(along.at(left), along.at(right), y, y)
    return lying + (NOTHING if below is None else _LINE.format(x, x, up.at(below), up.at(above)))


def _labelled(row: Row, x: float, y: float, *, is_above: bool) -> Markup:
    """The point with its scenario, on the side with room; neighbours have theirs above and below in turn."""
    is_right = x > WIDTH * 0.7
    said, side = shortened(str(row["scenario"]), 24), "end" if is_right else "start"
    return _POINT.format(x=x, y=y) + text(x - 8 if is_right else x + 8, y - 7 if is_above else y + 17, said, side)
