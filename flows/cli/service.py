"""Commands that start, stop and show the service: Prefect's server, a worker, and the pages."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from flows.cli.arguments import JsonFlag, examples, read_settings
from flows.show import console

if TYPE_CHECKING:
    from flows.service.parts import Service

commands = typer.Typer()


@commands.command(epilog=examples("nightbench up", "nightbench --data /srv/nights up --postgres"))
def up(
    with_postgres: Annotated[
        bool,
        typer.Option("--postgres", help="From now on let Prefect use PostgreSQL, started in the data folder."),
    ] = False,
) -> None:
    """Start the service on this computer: Prefect's server and UI, a worker, the deployments, and the pages.

    Starts what does not run, deploys prefect.yaml again, and prints the addresses; may be repeated. User units of
    systemd keep it running where systemd is there; elsewhere it runs until `nightbench down` or a reboot.
    """
    from flows.service.busy_database import why_postgresql  # noqa: PLC0415
    from flows.service.keepers import keeper_of  # noqa: PLC0415
    from flows.service.start import up as start  # noqa: PLC0415

    service = _service()
    started = start(service, console.progress, with_postgres=with_postgres)
    console.line(f"started: {', '.join(started)}" if started else "all of it was running")
    console.line(f"Prefect UI  {service.ui}  login: the line in {service.folder / 'login'}")
    console.line(f"pages       {service.pages}")
    if (advice := why_postgresql(service, keeper_of(service))) is not None:
        console.line(f"advice: {advice}")
    console.line("next: `nightbench status` shows when the next night begins")


@commands.command(epilog=examples("nightbench down", "nightbench down --stop-night"))
def down(
    stop_night: Annotated[
        bool, typer.Option("--stop-night", help="Also stop nights in progress; their machines are released.")
    ] = False,
) -> None:
    """Stop the service of this data folder: worker, pages, server and database. Data, schedules and login stay."""
    from flows.service.start import down as stop  # noqa: PLC0415

    stopped = stop(_service(), console.progress, stop_night=stop_night)
    console.line(f"stopped: {', '.join(stopped)}" if stopped else "nothing was running")


@commands.command(epilog=examples("nightbench status", "nightbench status --json"))
def status(as_json: JsonFlag = False) -> None:
    """Show the service, the next and the last night, the age of each suite's data, and what is billed now.

    Exits 1 if a part is stopped, a night was missed, or a lease has expired and is still open.
    """
    from flows.service.status import read_status  # noqa: PLC0415
    from flows.show.service import show_status  # noqa: PLC0415

    found = read_status(_service())
    if as_json:
        console.print_json(asdict(found))
    else:
        show_status(found)
    if found.faults:
        raise typer.Exit(1)


@commands.command(epilog=examples("nightbench check", "nightbench --data data check"))
def check(
    test: Annotated[
        bool, typer.Option("--test", help="Only send a test message to each address, and try the tracker.")
    ] = False,
) -> None:
    """Look for what a person must know, send messages of what begins and of what is over, and print one line.

    For cron and uptime services: a stopped part of the service, a night that did not start, a suite without new data, a
    lease that has expired and is still open. Exits 1 where there is one, or where an address does not take a test.
    """
    from flows.check import find_faults  # noqa: PLC0415
    from flows.doctor.token_checks import examine_tracker  # noqa: PLC0415
    from flows.notifying import send_test  # noqa: PLC0415
    from infra.notices.tell import addresses  # noqa: PLC0415
    from warehouse.lake.database import require_data  # noqa: PLC0415

    settings = read_settings()
    if test:
        sent, trackers = send_test(settings, console.warn), examine_tracker(settings)
        console.line(f"{sent} of {len(addresses(settings))} addresses took the test message")
        for one in trackers:
            console.line(f"tracker: {one.found}{one.advice and f': {one.advice}'}")
        is_good = sent == len(addresses(settings)) and all(one.is_good for one in trackers)
        raise typer.Exit(0 if is_good else 1)
    require_data(settings.data.absolute())
    faults = find_faults(settings, console.warn)
    console.line("; ".join(fault.title for fault in faults) or "all is well")
    if faults:
        raise typer.Exit(1)


def _service() -> "Service":
    from flows.service.parts import Service  # noqa: PLC0415

    return Service(read_settings())
