"""The command that checks this computer."""

import typer

from flows.cli.arguments import JsonFlag, examples, read_settings

commands = typer.Typer()


@commands.command(epilog=examples("nightbench doctor", "nightbench doctor --json"))
def doctor(as_json: JsonFlag = False) -> None:
    """Check whether this computer can run a night, and print how to fix what is missing. Exits 1 if it cannot."""
    from flows.host_checks import examine  # noqa: PLC0415
    from flows.show.checks import show_checks  # noqa: PLC0415

    checks = examine(read_settings())
    show_checks(checks, as_json=as_json)
    if not all(check.is_good for check in checks):
        raise typer.Exit(1)
