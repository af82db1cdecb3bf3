"""The command that checks this computer."""

from typing import Annotated

import typer

from flows.cli.arguments import JsonFlag, examples, read_settings

commands = typer.Typer()
GpuFlag = Annotated[bool, typer.Option("--gpu", help="Check this computer's GPUs and their telemetry instead.")]


@commands.command(epilog=examples("nightbench doctor", "nightbench doctor --gpu"))
def doctor(as_json: JsonFlag = False, gpu: GpuFlag = False) -> None:
    """Check whether this computer can run a night, and print how to fix what is missing. Exits 1 if it cannot."""
    from flows.gpu_checks import examine_gpus  # noqa: PLC0415
    from flows.host_checks import examine  # noqa: PLC0415
    from flows.show.checks import show_checks  # noqa: PLC0415

    checks = (examine_gpus if gpu else examine)(read_settings())
    show_checks(checks, as_json=as_json)
    if not all(check.is_good for check in checks):
        raise typer.Exit(1)
