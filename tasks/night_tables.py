"""The tables of a night in the Prefect UI, and its summary in three lines."""

from pathlib import Path

from warehouse.lake.query import ask
from warehouse.report.night_line import night_line

# The UI shows the first seven without scrolling in a window of 1280 pixels; the long sentence comes last. An interval
# is that of the mean of a scenario's repeats, so that each of them has the same.
RESULTS = """
WITH intervals AS (
    SELECT scenario_id, format('{:.1f} to {:.1f}', low, high) AS text FROM night_repeats
    WHERE night = $1 AND metric = 'output_throughput_tok_per_s' AND low IS NOT NULL
)
SELECT scenario, "repeat", verdict, round(output_throughput_tok_per_s, 1) AS tok_per_s, intervals.text AS mean_95,
       round(ttft_p50_ms, 1) AS ttft_p50_ms, round(tpot_p50_ms, 2) AS tpot_p50_ms, round(e2el_p50_ms, 1) AS e2el_p50_ms,
       completed, failed, reason
FROM results LEFT JOIN intervals USING (scenario_id)
WHERE night = $1 ORDER BY scenario, scenario_id, "repeat"
"""
FINDINGS = 'SELECT scenario, "repeat", severity, code, doubts, message FROM findings_worst WHERE night = ?'
COSTS = "SELECT stage, scenario, times, minutes, usd FROM stage_costs WHERE night = ? ORDER BY began_at"
LEASES = """
SELECT lease_id, cloud, kind, region, is_spot, machine, attempt_count AS attempts, rented_at, released_at, usd
FROM leases WHERE night = ? ORDER BY rented_at
"""
CHANGES = """
SELECT series, metric, direction, effect_pct, ci_lo, ci_hi, state, last_good, first_bad, cause, cause_value
FROM change_points WHERE night = ? ORDER BY direction <> 'worse', abs(effect_pct) DESC
"""
TABLES = {"results": RESULTS, "findings": FINDINGS, "costs": COSTS, "leases": LEASES, "changes": CHANGES}
EXPLAINED = {"results": "; mean_95 is the 95 % interval of the mean tok_per_s of a scenario's repeats"}
_CHANGED = "SELECT direction, count(*) FROM change_points WHERE night = ? AND state = 'confirmed' GROUP BY 1 ORDER BY 1"


def summary_text(data: Path, night: str, link: str) -> str:
    """The night in three lines of Markdown: its runs and cost, its changes, and the link to its page."""
    changed = ", ".join(f"{count} {direction}" for direction, count in ask(data, _CHANGED, (night,)).rows)
    lines = (night_line(data, night), f"confirmed changes: {changed or 'none'}", f"[The page of night {night}]({link})")
    return "\n\n".join(lines)
