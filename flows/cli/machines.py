"""Commands for what is rented: list leases, release leftovers."""

from typing import Annotated

import typer

from bench.errors import LeaseError, UsageError
from flows.cli.arguments import JsonFlag, examples, read_settings
from flows.show import console

commands = typer.Typer()


@commands.command(epilog=examples("nightbench reap", "nightbench reap --all"))
def reap(
    everything: Annotated[bool, typer.Option("--all", help="Include machines that are in use.")] = False,
    lease: Annotated[
        str | None, typer.Option(metavar="LEASE", help="Release this lease only, also while it is in use.")
    ] = None,
) -> None:
    """Release every machine of ours whose lease has expired, whose run has died, or that the ledger does not list.

    Works without a ledger: a machine's name states that it is ours and when its lease expires. Exits 3 if a machine
    could not be released.
    """
    from flows.show.leases import show_reaped  # noqa: PLC0415
    from infra.bootstrap import clouds, ledger_file  # noqa: PLC0415
    from infra.leases.leftovers import release_leftovers, release_one  # noqa: PLC0415

    settings = read_settings()
    if lease is not None:
        if everything:
            raise UsageError("--all releases every lease and --lease only one: use one of them")
        gone = release_one(settings.data, ledger_file(settings), clouds(settings), lease, say=console.progress)
        console.line(f"released {', '.join(gone)}" if gone else f"no machine of lease {lease} exists")
        return
    reaped = release_leftovers(
        settings.data, ledger_file(settings), clouds(settings), everything=everything, say=console.progress
    )
    show_reaped(reaped)
    if reaped.failed:
        raise typer.Exit(LeaseError.exit_code)


@commands.command(epilog=examples("nightbench leases", "nightbench leases --json"))
def leases(as_json: JsonFlag = False) -> None:
    """List current and past leases with the cost of each stage, and stored images, volumes and models."""
    from flows.show.leases import show_leases  # noqa: PLC0415
    from infra.bootstrap import clouds, ledger, stage_book, volume_book  # noqa: PLC0415
    from infra.leases.listing import lease_views, stored_items, stored_models  # noqa: PLC0415
    from infra.storage.bucket import bucket_location  # noqa: PLC0415

    settings = read_settings()
    views = lease_views(ledger(settings), stage_book(settings))
    stored = stored_items(clouds(settings), volume_book(settings).open_volumes())
    location = bucket_location(settings)
    if location is not None:
        stored += stored_models(location)
    show_leases(views, stored, as_json=as_json)
    for why in ledger(settings).readable_leases()[1].values():
        console.warn(f"not listed: {why}")
