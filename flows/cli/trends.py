"""Commands about many nights: what changed, since when, by how much and why."""

import getpass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from flows.cli.arguments import JsonFlag, examples, read_settings
from flows.show import console

if TYPE_CHECKING:
    from pathlib import Path

commands = typer.Typer()
_SHOWN = ("first_bad", "series", "metric", "effect", "direction", "state", "cause", "event_id")
_JUDGED = ("series", "metric", "judgement", "effect", "mde_pct", "baseline_nights", "reason")


@commands.command(
    epilog=examples("nightbench trends throughput --json", "nightbench trends --night 2026-03-01T010000Z")
)
def trends(
    pattern: Annotated[
        str | None, typer.Argument(help="Regular expression; only series whose name or metric matches.")
    ] = None,
    as_json: JsonFlag = False,
    with_weak: Annotated[bool, typer.Option("--weak", help="Also print weak changes; many of them are noise.")] = False,
    night: Annotated[
        str | None, typer.Option(metavar="NIGHT", help="Print the verdict on each series of this night.")
    ] = None,
) -> None:
    """List what changed in the series of the warehouse: since when, by how much, why, one line per series.

    Changes of one event have the same event_id. Own nights and imported histories are series.
    """
    from warehouse.trends.find import find_trends  # noqa: PLC0415

    data = read_settings().data.absolute()
    if night is not None:
        _show_night(data, night, pattern, as_json=as_json)
        return
    found = find_trends(data, pattern, with_weak=with_weak)
    rows = found.rows()
    if as_json:
        console.print_json(rows)
        return
    shown = [row | {"effect": _effect(row)} for row in rows]
    console.table([{name: row[name] for name in _SHOWN} for row in shown], "changes")
    events = len({row["event_id"] for row in rows})
    console.line(
        f"{found.series_count} series, {len(rows)} changes in {events} events; "
        f"{found.too_short_count} series have fewer than 10 nights and were not judged"
    )


def _show_night(data: "Path", night: str, pattern: str | None, *, as_json: bool) -> None:
    from warehouse.trends.of_night import said_of_night, summary_of  # noqa: PLC0415

    rows = said_of_night(data, night, pattern)
    if as_json:
        console.print_json(rows)
        return
    shown = [row | {"effect": _effect(row), "mde_pct": _percent(row["mde_pct"])} for row in rows]
    console.table([{name: row[name] for name in _JUDGED} for row in shown], f"night {night}")
    console.line(summary_of(rows))


def _effect(row: dict[str, float]) -> str:
    if row["effect_pct"] is None:
        return ""
    return f"{row['effect_pct']:+.1f} % [{row['ci_lo']:+.1f}, {row['ci_hi']:+.1f}]"


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.1f} %"


@commands.command(
    epilog=examples(
        "nightbench acknowledge 3f2a9c01de --state explained --note 'driver upgrade, accepted by the team'",
        "nightbench acknowledge 3f2a9c01de --state rejected --note 'the client was restarted' --by lee",
    )
)
def acknowledge(
    event: Annotated[str, typer.Argument(help="event_id, as `nightbench trends` prints it.")],
    note: Annotated[str, typer.Option(help="The cause, or what was done about it.")],
    state: Annotated[
        Literal["confirmed", "host", "explained", "rejected"] | None,
        typer.Option(help="New state of its changes; default: unchanged."),
    ] = None,
    by: Annotated[str | None, typer.Option(help="Author of the note; default: your user name.")] = None,
) -> None:
    """Add a note to an event, and change its state. Earlier verdicts and notes are kept.

    After a `rejected` change, later nights are compared with the level before the change.
    """
    from bench.trends.judgement import Acknowledgement  # noqa: PLC0415
    from warehouse.trends.acknowledge import acknowledge as keep  # noqa: PLC0415

    said = Acknowledgement(
        event_id=event,
        acknowledged_at=datetime.now(UTC),
        acknowledged_by=by or getpass.getuser(),
        state=state,
        note=note,
    )
    count = keep(read_settings().data.absolute(), said)
    console.line(f"event {event}, {count} series: {state or 'state unchanged'}; {note}")
