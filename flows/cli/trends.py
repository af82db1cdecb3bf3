"""Commands about many nights: what changed, since when, by how much and why."""

from typing import Annotated

import typer

from flows.cli.arguments import JsonFlag, examples, read_settings
from flows.show import console

commands = typer.Typer()
_SHOWN = ("first_bad", "series", "metric", "effect", "direction", "state", "cause", "event_id")


@commands.command(epilog=examples("nightbench trends", "nightbench trends throughput --json"))
def trends(
    pattern: Annotated[
        str | None, typer.Argument(help="Regular expression; only series whose name or metric matches.")
    ] = None,
    as_json: JsonFlag = False,
    with_weak: Annotated[bool, typer.Option("--weak", help="Also print weak changes; many of them are noise.")] = False,
) -> None:
    """List what changed in the series of the warehouse: since when, by how much, why, one line per series.

    Changes of one event have the same event_id. Own nights and imported histories are series.
    """
    from warehouse.trends.find import find_trends  # noqa: PLC0415

    found = find_trends(read_settings().data.absolute(), pattern, with_weak=with_weak)
    rows = found.rows()
    if as_json:
        console.print_json(rows)
        return
    shown = [
        row
        | {
            "first_bad": row["first_bad"][:16],
            "effect": f"{row['effect_pct']:+.1f} % [{row['ci_lo']:+.1f}, {row['ci_hi']:+.1f}]",
        }
        for row in rows
    ]
    console.table([{name: row[name] for name in _SHOWN} for row in shown], "changes")
    events = len({row["event_id"] for row in rows})
    console.line(
        f"{found.series_count} series, {len(rows)} changes in {events} events; "
        f"{found.too_short_count} series have fewer than 10 nights and were not judged"
    )
