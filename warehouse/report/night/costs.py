"""What a night cost: by stage, by million tokens, and in energy where the device told its power."""

from collections.abc import Iterator
from pathlib import Path

from markupsafe import Markup

from warehouse.report.markup import NOTHING, table_html
from warehouse.report.night.bars import Measure, bars
from warehouse.report.pictures import Answer, asked, picture_html, sources_html
from warehouse.schema.row import Row

_STAGES = """
WITH spent AS (
    SELECT *,
        stage = 'measure' AND row_number() OVER (PARTITION BY run_id, stage ORDER BY started_at DESC) = 1 AS is_run
    FROM stages WHERE night = {{ night }}
)
SELECT stage, count(*) AS times, sum(duration_s) / 60 AS duration_min, sum(usd) AS usd,
    sum(usd) / nullif(sum(sum(usd)) OVER (), 0) AS cost_share, sum(energy_j) FILTER (is_run) / 3600 AS energy_wh
FROM spent LEFT JOIN (SELECT night, run_id, energy_j FROM measurements WHERE night = {{ night }}) AS runs
    USING (night, run_id)
GROUP BY stage ORDER BY min(spent.started_at), stage
"""
_TOKENS = """
SELECT scenario, count(*) AS runs, avg(usd_per_mtok_output) AS usd_per_mtok_output,
    avg(joules_per_output_token) AS joules_per_output_token, avg(joules_per_output_token) / 3.6 AS kwh_per_mtok_output,
    avg(power_mean_w) AS power_mean_w, sum(energy_j) / 3600 AS energy_wh
FROM accepted WHERE night = {{ night }} AND is_control IS NOT TRUE
GROUP BY scenario ORDER BY min("order"), scenario
"""
_ONLY_LOADS = Markup("<p>Power is sampled during loads, so no other stage has a known energy.</p>")
_BY_TOKENS = Markup("<h3>By million output tokens</h3>{}{}<div class='more'>{}</div>")


def costs_html(data: Path, night: str) -> Markup:
    """The picture of the stages and the table of the scenarios; a sentence for what is not known."""
    return _stages(asked(data, night, _STAGES)) + _tokens(asked(data, night, _TOKENS))


def _stages(answer: Answer) -> Markup:
    rows = [row for row in answer.rows if row["duration_min"]]
    if not rows:
        return Markup("<p>No stage was recorded, so no cost of a stage is known.</p>")
    measures = [
        Measure(
            row["stage"],
            row["duration_min"],
            ", ".join(_measured(row)),
            "bar" if row["stage"] == "measure" else "stage",
        )
        for row in rows
    ]
    said = "; ".join(f"{one.label} {one.said}" for one in measures)
    lead = _ONLY_LOADS if any(row["energy_wh"] for row in rows) else NOTHING
    title = "Time, cost and energy of each stage (minutes, USD, Wh)"
    return lead + picture_html(answer, "cost", title, said, bars(measures))


def _measured(row: Row) -> Iterator[str]:
    yield f"{row['duration_min']:,.1f} min"
    if row["usd"] is not None:
        yield f"{row['usd']:.2f} USD"
    if row["energy_wh"] is not None:
        yield f"{row['energy_wh']:,.1f} Wh"


def _tokens(answer: Answer) -> Markup:
    if not answer.rows:
        return NOTHING
    is_priced = any(row["usd_per_mtok_output"] for row in answer.rows)
    has_energy = any(row["joules_per_output_token"] for row in answer.rows)
    lacking = [] if is_priced else ["No price is known, or the machine costs nothing."]
    lacking += [] if has_energy else ["No energy is known: nothing sampled the power of a GPU."]
    said = Markup("<p>{}</p>").format(" ".join(lacking)) if lacking else NOTHING
    return _BY_TOKENS.format(said, table_html(answer.rows), sources_html(answer, "tokens"))
