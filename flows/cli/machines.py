"""Commands for what is rented: list leases, delete leftovers."""

from typing import Annotated

import typer

from bench.errors import LeaseError
from flows.cli.arguments import JsonFlag, examples, read_settings
from flows.show import console

commands = typer.Typer()


@commands.command(epilog=examples("nightbench reap", "nightbench reap --all"))
def reap(
    everything: Annotated[bool, typer.Option("--all", help="Include machines that are in use.")] = False,
) -> None:
    """Delete every machine of ours whose lease has expired, whose run has died, or that the ledger does not list.

    Works without a ledger: a machine's name states that it is ours and when its lease expires. Exits 3 if a machine
    could not be deleted.
    """
    from flows.show.leases import show_reaped  # noqa: PLC0415
    from tasks.leases import give_back_leftovers  # noqa: PLC0415

    reaped = give_back_leftovers(read_settings(), everything=everything, say=console.progress)
    show_reaped(reaped)
    if reaped.failed:
        raise typer.Exit(LeaseError.exit_code)


@commands.command(epilog=examples("nightbench leases", "nightbench leases --json"))
def leases(as_json: JsonFlag = False) -> None:
    """List current and past leases with the cost of each stage, and stored images, volumes and models."""
    from flows.show.leases import show_leases  # noqa: PLC0415
    from infra.bootstrap import clouds, volume_book  # noqa: PLC0415
    from tasks.lease_views import lease_views, models_kept, what_is_kept  # noqa: PLC0415

    settings = read_settings()
    views = lease_views(settings)
    stored = [*what_is_kept(clouds(settings), volume_book(settings).open_volumes()), *models_kept(settings)]
    show_leases(views, stored, as_json=as_json)
