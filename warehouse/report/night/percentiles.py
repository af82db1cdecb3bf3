"""The latency percentiles of each run, by scenario."""

from pathlib import Path

from markupsafe import Markup

from warehouse.report.latencies import Bar, percentile_chart
from warehouse.report.markup import NOTHING, joined, sql_html
from warehouse.report.pictures import Answer, asked

_LATENCIES = """
SELECT scenario, "repeat", {% for one in ("ttft", "tpot", "e2el") %}{% for q in ("p50", "p90", "p99") %}
    {{ (one ~ "_" ~ q ~ "_ms") | name }},{% endfor %}{% endfor %}

FROM standing
WHERE night = {{ night }} AND is_control IS NOT TRUE
ORDER BY min("order") OVER (PARTITION BY scenario_id), scenario_id, "repeat", run_id
"""
_TITLES = {"ttft": "Time to first token", "tpot": "Time per output token", "e2el": "End-to-end latency"}


def percentiles_html(data: Path, night: str) -> Markup:
    """A picture for each latency; a sentence where no run has one."""
    answer = asked(data, night, _LATENCIES)
    pictures = joined(_picture(answer, metric, words) for metric, words in _TITLES.items())
    if not pictures:
        return Markup("<p>No run has a latency.</p>")
    lead = Markup("<p>A percentile with too few requests behind it is left out.</p>")
    return lead + Markup("<div class='panels'>{}</div>").format(pictures)


def _picture(answer: Answer, metric: str, words: str) -> Markup:
    bars = [
        Bar(f"{row['scenario']} #{row['repeat']}", *(row[f"{metric}_{q}_ms"] for q in ("p50", "p90", "p99")))
        for row in answer.rows
        if row[f"{metric}_p50_ms"] is not None
    ]
    title = f"{words} (ms): bar to p50, mark at p90, line to p99"
    return percentile_chart(title, bars, f"{answer.night}-{metric}", sql_html(answer.query)) if bars else NOTHING
