"""Commands for what is rented: list leases, release leftovers, delete all that is ours."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from bench.errors import LeaseError, UsageError
from flows.cli.arguments import JsonFlag, examples, read_settings
from flows.show import console

if TYPE_CHECKING:
    from infra.leases.reaper import Reaped
    from infra.settings import Settings

commands = typer.Typer()


@commands.command(epilog=examples("nightbench reap", "nightbench reap --everything --yes"))
def reap(
    in_use: Annotated[bool, typer.Option("--all", help="Include what a running night holds or may need.")] = False,
    lease: Annotated[
        str | None, typer.Option(metavar="LEASE", help="Release this lease only, also while it is in use.")
    ] = None,
    attempt: Annotated[
        int | None, typer.Option(min=1, help="With --lease: only while its night has made no further attempt to rent.")
    ] = None,
    everything: Annotated[
        bool,
        typer.Option(
            "--everything", help="Delete images, volumes, keys and the bucket's models too, after a question."
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Delete without the question of --everything.")] = False,
) -> None:
    """Release every machine of ours whose lease has expired, whose run was killed, or that the ledger does not list.

    Works without a ledger: a machine's name states that it is ours and when its lease expires. `--everything` lists all
    that is ours with its price and deletes it, but for what a running night holds or may need; results stay. Exits 3 if
    something could not be released or deleted.
    """
    from flows.show.leases import show_reaped  # noqa: PLC0415
    from infra.bootstrap import clouds, clouds_to_search, ledger_file  # noqa: PLC0415
    from infra.leases.leftovers import release_leftovers, release_one  # noqa: PLC0415
    from infra.notices.leases import ReaperRound, tell_of_reaped, telling_of_lease  # noqa: PLC0415

    settings = read_settings()
    if yes and not everything:
        raise UsageError("--yes answers the question of --everything: add --everything, or leave --yes out")
    if attempt is not None and lease is None:
        raise UsageError("--attempt is of one lease: add --lease LEASE")
    if lease is not None:
        if in_use or everything:
            more = "--everything" if everything else "--all"
            raise UsageError(f"{more} releases every lease and --lease only one: use one of them")
        with telling_of_lease(settings, ledger_file(settings), lease, console.warn):
            gone = release_one(
                settings.data, ledger_file(settings), clouds_to_search(settings), lease, attempt, say=console.progress
            )
        console.line(f"released {', '.join(gone)}" if gone else f"no machine of lease {lease} exists")
        return
    searched = clouds(settings)
    if everything:
        reaped = _reap_everything(settings, in_use=in_use, is_agreed=yes)
    else:
        reaped = release_leftovers(
            settings.data, ledger_file(settings), searched, everything=in_use, say=console.progress
        )
    show_reaped(reaped)
    tell_of_reaped(settings, ReaperRound(reaped.failed, reaped.cloud_of, searched), console.warn)
    if reaped.failed:
        raise typer.Exit(LeaseError.exit_code)


def _reap_everything(settings: "Settings", *, in_use: bool, is_agreed: bool) -> "Reaped":
    """Show all that is ours, ask, and delete it: machines first, since a volume is free once its machine is gone."""
    from flows.show.leases import show_inventory, show_kept  # noqa: PLC0415
    from infra.bootstrap import clouds, ledger_file  # noqa: PLC0415
    from infra.clock import SystemClock  # noqa: PLC0415
    from infra.leases.inventory import Owner, remove_stored, take_inventory  # noqa: PLC0415
    from infra.leases.ledger_recovery import open_ledger  # noqa: PLC0415
    from infra.leases.leftovers import release_leftovers  # noqa: PLC0415
    from infra.storage.bucket import bucket_location  # noqa: PLC0415

    clock = SystemClock()
    ledger = open_ledger(ledger_file(settings), clock, console.warn)
    owner = Owner(clouds(settings), ledger, clock, bucket_location(settings), everything=in_use)
    found = take_inventory(owner)
    show_inventory(found)
    if found.to_delete and not is_agreed:
        _require_consent()
    reaped = release_leftovers(
        settings.data, ledger_file(settings), owner.clouds, everything=in_use, say=console.progress
    )
    show_kept(remove_stored(owner, found.to_delete, reaped))
    return reaped


def _require_consent() -> None:
    """Return if a person at the terminal agrees; without a terminal, UsageError."""
    if not sys.stdin.isatty():
        raise UsageError(
            "nothing was deleted: --everything asks before it deletes, and there is no terminal; add --yes"
        )
    if not typer.confirm("Delete all of this but what is kept?"):
        console.line("nothing was deleted")
        raise typer.Exit


@commands.command(epilog=examples("nightbench leases", "nightbench leases --json"))
def leases(as_json: JsonFlag = False) -> None:
    """List current and past leases with the cost of each stage, and stored images, volumes and models."""
    from flows.show.leases import month_line, show_leases  # noqa: PLC0415
    from infra.bootstrap import clouds, ledger, spending_of_month, stage_book, volume_book  # noqa: PLC0415
    from infra.leases.listing import lease_views, stored_items, stored_models  # noqa: PLC0415
    from infra.storage.bucket import bucket_location  # noqa: PLC0415

    settings = read_settings()
    views = lease_views(ledger(settings), stage_book(settings))
    stored = stored_items(clouds(settings), volume_book(settings).open_volumes())
    location = bucket_location(settings)
    if location is not None:
        stored += stored_models(location)
    show_leases(views, stored, as_json=as_json)
    if not as_json:
        console.line(month_line(spending_of_month(settings)))
    for why in ledger(settings).readable_leases()[1].values():
        console.warn(f"not listed: {why}")
