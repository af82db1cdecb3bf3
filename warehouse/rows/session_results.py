"""What a run gave by session, and how much of its prompts the prefix cache had, planned and found."""

from collections.abc import Mapping

from bench import metrics
from bench.audit.reconcile import planned_hits
from bench.loadgen.report import LoadReport
from warehouse.rows.units import S_PER_HOUR
from warehouse.schema.row import Row


def session_results(report: LoadReport, row: Row) -> Row:
    """The columns of the sessions that were measured and done; none without sessions."""
    sessions = report.sessions
    if sessions is None:
        return {}
    count, e2e_s = int(sessions.chosen.sum()), sessions.e2e_s
    hours, price = (row["duration_s"] or 0.0) / S_PER_HOUR, row["usd_per_hour"]
    return {
        "sessions_done": count,
        "sessions_open_mean": sessions.open_mean,
        "session_e2e_mean_s": metrics.mean_s(e2e_s),
        "session_e2e_p50_s": metrics.percentile_s(e2e_s, 50, count),
        "session_e2e_p99_s": metrics.percentile_s(e2e_s, 99, count),
        "session_p50_tok_per_s": metrics.percentile_s(sessions.tok_per_s, 50, count),
        "usd_per_session": None if price is None else metrics.ratio(price * hours, count),
    }


def cache_shares(report: LoadReport, deltas: Mapping[str, float] | None) -> Row:
    """The shares of the prompt tokens that the server looked up, warm-up included; None where it counts none."""
    queried = (deltas or {}).get("prefix_cache_queries_total")
    if not queried:
        return {}
    return {
        "planned_cache_hit_share": metrics.ratio(planned_hits(report), queried),
        "server_cache_hit_share": metrics.ratio((deltas or {}).get("prefix_cache_hits_total"), queried),
    }
