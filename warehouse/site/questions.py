"""The tables of the site's pages: each a question, its SQL, and what the page says around its answer."""

from dataclasses import dataclass

from markupsafe import Markup

from warehouse.sql import sql
from warehouse.trends.usual_nights import USUAL


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
        Markup("The leases. Months with an unknown cost have no sum."),
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

# One row a load in two nights of each setup: its newest, and the one 30 days before (of a younger setup its first).
_POINTS = """
WITH loads AS (
    SELECT model, "precision", coalesce(machine_kind, 'unknown') AS machine,
        coalesce(any_value(gpu_count), 0) || 'x' || coalesce(any_value(gpus[1]), 'cpu') AS gpus,
        engine, arg_max(engine_version_found, started_at) AS engine_version, isl, osl, night, scenario,
        any_value(coalesce(concurrency_asked::VARCHAR, request_rate_per_s_asked || '/s', '')) AS "load",
        min(started_at) AS measured_at,
        avg(1000 / tpot_p50_ms) AS tok_per_s_per_user,
        avg(output_throughput_tok_per_s / greatest(coalesce(gpu_count, 1), 1)) AS tok_per_s_per_gpu,
        avg(usd_per_mtok_output) AS usd_per_mtok, avg(joules_per_output_token) AS joules_per_token,
        avg(goodput_tok_per_s) AS goodput_tok_per_s
    FROM accepted WHERE tpot_p50_ms > 0 AND {{ usual }}
    GROUP BY model, "precision", machine_kind, engine, isl, osl, night, scenario, scenario_id
), dated AS (
    SELECT *, min(measured_at) OVER (PARTITION BY model, "precision", machine, engine, isl, osl, night) AS night_at
    FROM loads
), compared AS (
    SELECT *, max(night_at) OVER setup AS newest_at, min(night_at) OVER setup AS first_at
    FROM dated WINDOW setup AS (PARTITION BY model, "precision", machine, engine, isl, osl)
), chosen AS (
    SELECT *,
        coalesce(max(night_at) FILTER (night_at <= newest_at - INTERVAL 30 DAY) OVER setup, first_at) AS earlier_at
    FROM compared WINDOW setup AS (PARTITION BY model, "precision", machine, engine, isl, osl)
)
SELECT concat_ws(' ', model, "precision", gpus, engine) || if(
        count(DISTINCT machine) OVER (PARTITION BY model, "precision", gpus, engine) > 1, ' on ' || machine, ''
    ) AS setup, * EXCLUDE (night_at, newest_at, first_at, earlier_at),
    if(night_at = newest_at, 'newest', 'earlier') AS "when"
FROM chosen WHERE night_at IN (newest_at, earlier_at)
ORDER BY setup, isl, osl, night, tok_per_s_per_user, scenario
"""

# What came of the newest try of each setup.
_TRIED = """
WITH tries AS (
    SELECT model, "precision", coalesce(machine_kind, 'unknown') AS machine, engine, isl, osl, night, verdict
    FROM measurements
    WHERE is_control IS NOT TRUE AND {{ usual }}
    QUALIFY night = max(night) OVER (PARTITION BY model, "precision", machine_kind, engine, isl, osl)
), rented AS (
    SELECT night, kind AS machine, bool_or(outcome = 'no-capacity') AND NOT bool_or(outcome = 'rented') AS was_full
    FROM attempts GROUP BY night, kind
)
SELECT model, "precision", tries.machine, engine, isl, osl, tries.night, count(*) AS runs,
    CASE
        WHEN bool_or(verdict = 'accepted') THEN 'accepted'
        WHEN bool_or(was_full) THEN 'no capacity'
        WHEN bool_or(verdict = 'suspect') THEN 'suspect'
        WHEN bool_or(verdict = 'rejected') THEN 'rejected'
        WHEN bool_or(verdict = 'failed') THEN 'failed'
        ELSE 'not run'
    END AS result
FROM tries LEFT JOIN rented ON rented.night = tries.night AND rented.machine = tries.machine
GROUP BY ALL ORDER BY ALL
"""
POINTS, TRIED = sql(_POINTS, usual=USUAL), sql(_TRIED, usual=USUAL)
