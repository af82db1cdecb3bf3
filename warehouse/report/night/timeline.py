"""The night on a line of time: what was billed, each stage, each measurement, and what nothing used."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import groupby
from pathlib import Path

from markupsafe import Markup

from bench.cost.lease_cost import BETWEEN
from warehouse.report.markup import joined
from warehouse.report.pictures import Answer, asked, picture_html
from warehouse.report.plot import WIDTH, Scale, picture, shortened, text, x_axis
from warehouse.schema.row import Row

_STAGES = """
SELECT stages.lease_id, stage, scenario, "repeat", stages.started_at, stages.ended_at,
    stages.duration_s / 60 AS duration_min, stages.usd
FROM stages LEFT JOIN (
    SELECT night, run_id, scenario, "repeat" FROM measurements WHERE night = {{ night }}
) AS runs USING (night, run_id)
WHERE night = {{ night }}
UNION ALL
SELECT lease_id, 'billed', NULL, NULL, rented_at, released_at,
    epoch(released_at - rented_at) / 60, usd
FROM leases WHERE night = {{ night }}
UNION ALL
SELECT lease_id, 'start: ' || phase, NULL, NULL, began_at, ended_at, duration_s / 60, NULL
FROM start_phases WHERE night = {{ night }}
ORDER BY lease_id, stage <> 'billed', started_at, stage
"""
BILLED, MEASURE = "billed", "measure"
LEFT, ROW, TOP = 100, 20, 8
LANES = 24  # of a machine; the table has every stage
_MINUTE = 60.0
_BAR = Markup('<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="13" class="{kind}"><title>{said}</title></rect>')


def timeline_html(data: Path, night: str) -> Markup:
    """A picture for each machine; a sentence where no stage was recorded."""
    answer = asked(data, night, _STAGES)
    leases = [list(rows) for _, rows in groupby(answer.rows, key=lambda row: row["lease_id"])]
    found = joined(_machine(answer, rows, at) for at, rows in enumerate(leases) if _ended(rows))
    return found or Markup("<p>No stage with an end was recorded.</p>")


def _ended(rows: Sequence[Row]) -> list[Row]:
    """The stages that ended. The time between stages is recorded as one, too; here it is idle."""
    return [row for row in rows if row["started_at"] and row["ended_at"] and row["stage"] not in (BILLED, BETWEEN)]


def _machine(answer: Answer, rows: Sequence[Row], at: int) -> Markup:
    stages = _ended(rows)
    billed = next((row for row in rows if row["stage"] == BILLED and row["started_at"]), None)
    begin = min(row["started_at"] for row in [*stages, *([billed] if billed else [])])
    end = max(row["ended_at"] for row in [*stages, *([billed] if billed and billed["ended_at"] else [])])
    names = list(dict.fromkeys(row["stage"] for row in stages))[:LANES]
    lanes: list[tuple[str, list[tuple[datetime, datetime]]]] = [(name, _spans(stages, name)) for name in names]
    idle = list(_gaps(stages, begin, end))
    lanes = [*([(BILLED, [(begin, end)])] if billed else []), *lanes, ("idle", idle)]
    along = Scale(0.0, (end - begin).total_seconds() / _MINUTE or 1.0, LEFT, WIDTH - 12)
    bottom = TOP + ROW * len(lanes)
    bars = joined(_lane(name, spans, begin, along, TOP + ROW * place) for place, (name, spans) in enumerate(lanes))
    axis = x_axis(along, TOP, bottom, "minutes since the machine was rented")
    said = _said(lanes, billed)
    lead = Markup("<p>{}</p>").format(said)
    title = "What the machine did (minutes)" if at == 0 else f"What machine {at + 1} did (minutes)"
    return lead + picture_html(answer, f"timeline-{at + 1}", title, said, picture(bottom + 38, axis, bars))


def _spans(stages: Sequence[Row], name: str) -> list[tuple[datetime, datetime]]:
    return [(row["started_at"], row["ended_at"]) for row in stages if row["stage"] == name]


def _gaps(stages: Sequence[Row], begin: datetime, end: datetime) -> Iterator[tuple[datetime, datetime]]:
    """The times in which no stage ran."""
    until = begin
    for row in sorted(stages, key=lambda row: row["started_at"]):
        if row["started_at"] > until:
            yield until, row["started_at"]
        until = max(until, row["ended_at"])
    if end > until:
        yield until, end


def _lane(name: str, spans: Sequence[tuple[datetime, datetime]], begin: datetime, along: Scale, top: int) -> Markup:
    label = text(LEFT - 6, top + 12, shortened(name, 15), "end")
    kind = {MEASURE: "bar", BILLED: "billed", "idle": "idle"}.get(name, "stage")
    return label + joined(
        _BAR.format(
            x=along.at((first - begin).total_seconds() / _MINUTE),
            y=top + 3,
            width=max(1.0, along.at((last - first).total_seconds() / _MINUTE) - along.at(0.0)),
            kind=kind,
            said=f"{name}: {_minutes((last - first).total_seconds() / _MINUTE)}",
        )
        for first, last in spans
    )


def _said(lanes: Sequence[tuple[str, Sequence[tuple[datetime, datetime]]]], billed: Row | None) -> str:
    minutes = {name: sum((last - first).total_seconds() for first, last in spans) / _MINUTE for name, spans in lanes}
    whole = minutes.pop(BILLED, None)
    if whole is None:
        head = "No time was billed"
    else:
        price = f" for {billed['usd']:,.2f} USD" if billed and billed["usd"] is not None else ""
        share = minutes.get(MEASURE, 0.0) / (whole or 1.0)
        head = f"{_minutes(whole)} were billed{price}, {share:.0%} of them measured"
    return f"{head}: " + ", ".join(f"{name} {_minutes(value)}" for name, value in minutes.items() if value) + "."


def _minutes(value: float) -> str:
    """Minutes to a tenth, seconds where there are few."""
    return f"{value:,.1f} min" if value >= 1 else f"{value * _MINUTE:.0f} s"
