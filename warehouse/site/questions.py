"""The tables of the site's pages: each a question, its SQL, and what the page says around its answer."""

from dataclasses import dataclass

from markupsafe import Markup


@dataclass(frozen=True)
class Question:
    """A table of a page; `name` is that of its CSV, `lead` stands above its rows, `none` instead of them."""

    name: str
    title: str
    lead: Markup
    none: str
    sql: str


COMPARE = (
    Question(
        "published",
        "Published figures beside ours",
        Markup("A ratio stands only where the terms are equal; <code>terms</code> has each difference."),
        "No published figure of the catalogue has the model, lengths and load of the newest night.",
        "SELECT * FROM beside_published WHERE night = (SELECT max(night) FROM measurements)",
    ),
)

COST = (
    Question(
        "usd_per_mtok",
        "What a million output tokens cost in the newest night",
        Markup("Price of the machine over the throughput of accepted runs."),
        "No accepted run of the newest night has a price.",
        """
SELECT model, "precision", scenario, engine, engine_version_found, count(*) AS repeats,
    avg(usd_per_mtok_output) AS usd_per_mtok_output, avg(output_throughput_tok_per_s) AS output_throughput_tok_per_s
FROM accepted WHERE night = (SELECT max(night) FROM measurements) AND usd_per_mtok_output IS NOT NULL
GROUP BY ALL ORDER BY usd_per_mtok_output
""",
    ),
    Question(
        "night_costs",
        "What the nights cost",
        Markup("The newest 60 nights."),
        "No own night is in the warehouse.",
        "SELECT * FROM night_costs ORDER BY night DESC LIMIT 60",
    ),
    Question(
        "month_costs",
        "What the months cost",
        Markup("Months with an unknown cost have no sum."),
        "No own night is in the warehouse.",
        """
SELECT left(night, 7) AS month, count(*) AS nights, if(count(usd) = count(*), sum(usd), NULL) AS usd,
    sum(measurements) AS measurements, sum(accepted) AS accepted
FROM night_costs GROUP BY month ORDER BY month DESC
""",
    ),
)

TRUST = (
    Question(
        "verdicts",
        "Verdicts of the audit",
        Markup("Runs of the newest 30 nights."),
        "No own run is in the warehouse.",
        """
SELECT night, count(*) AS runs, count(*) FILTER (verdict = 'accepted') AS accepted,
    count(*) FILTER (verdict = 'suspect') AS suspect, count(*) FILTER (verdict = 'rejected') AS rejected,
    count(*) FILTER (verdict = 'failed') AS failed, count(*) FILTER (verdict = 'not-run') AS not_run
FROM measurements GROUP BY night ORDER BY night DESC LIMIT 30
""",
    ),
    Question(
        "findings",
        "Findings of the newest night",
        Markup("Each has what was observed and the bounds in its message."),
        "The newest night has no findings.",
        """
SELECT code, family, severity, status, count(*) AS runs, min(observed) AS lowest, max(observed) AS highest,
    any_value(message) AS example
FROM findings WHERE night = (SELECT max(night) FROM measurements) AND severity <> 'info'
GROUP BY ALL ORDER BY severity, code
""",
    ),
    Question(
        "detectable",
        "What the newest night could have seen",
        Markup(
            "<code>mde_pct</code> is the smallest change that would be found nine times of ten. The largest come first."
        ),
        "No series was judged yet.",
        """
SELECT source, series, metric, judged_night, judgement, reason, baseline_nights, mde_pct, min_effect_pct
FROM series_verdicts
QUALIFY row_number() OVER (PARTITION BY source, series, metric, unit ORDER BY measured_at DESC, said_at DESC) = 1
ORDER BY mde_pct DESC NULLS LAST, series, metric LIMIT 100
""",
    ),
    Question(
        "controls",
        "History of the control",
        Markup("The same scenario on each lease: what differs here is the machine."),
        "No night has a control.",
        "SELECT * EXCLUDE (log_output_throughput) FROM controls ORDER BY night DESC LIMIT 60",
    ),
    Question(
        "reliability",
        "Failed runs by reason",
        Markup("All nights."),
        "No run failed.",
        """
SELECT stage, any_value(reason) AS example, count(*) AS runs, max(night) AS last_night
FROM measurements WHERE verdict = 'failed' GROUP BY stage ORDER BY runs DESC
""",
    ),
    Question(
        "alarms",
        "Outcome of the reported changes",
        Markup("Changes by their state of today. <code>rejected</code> ones were false alarms."),
        "No change has been reported yet.",
        "SELECT state, count(*) AS changes, count(DISTINCT event_id) AS events FROM changes GROUP BY ALL ORDER BY 1",
    ),
)

PARETO = """
WITH nights AS (
    SELECT DISTINCT night FROM measurements ORDER BY night DESC LIMIT 31
)
SELECT
    concat_ws(' ', model, "precision", coalesce(any_value(gpu_count), 0) || 'x' || coalesce(any_value(gpus[1]), 'cpu'),
        engine) AS setup,
    night, scenario,
    any_value(coalesce(concurrency_asked::VARCHAR, request_rate_per_s_asked || '/s', '')) AS "load",
    avg(1000 / tpot_p50_ms) AS tok_per_s_per_user,
    avg(output_throughput_tok_per_s / greatest(coalesce(gpu_count, 1), 1)) AS tok_per_s_per_gpu,
    avg(usd_per_mtok_output) AS usd_per_mtok, avg(joules_per_output_token) AS joules_per_token
FROM accepted
WHERE night IN (SELECT unnest([min(night), max(night)]) FROM nights) AND tpot_p50_ms > 0 AND is_control IS NOT TRUE
GROUP BY model, "precision", engine, night, scenario, scenario_id
ORDER BY setup, night, tok_per_s_per_user
"""
