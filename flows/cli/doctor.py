"""The command that checks this computer, and stores what it lacks."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from flows.cli.arguments import JsonFlag, examples, read_settings
from flows.show import console

if TYPE_CHECKING:
    from flows.doctor.host_checks import Check
    from infra.settings import Settings

commands = typer.Typer()
GpuFlag = Annotated[bool, typer.Option("--gpu", help="Check this computer's GPUs and their telemetry instead.")]
FixFlag = Annotated[
    bool, typer.Option("--fix", help="Ask once for the token with which a rented machine deletes itself, and store it.")
]


@commands.command(epilog=examples("nightbench doctor", "nightbench doctor --gpu"))
def doctor(as_json: JsonFlag = False, gpu: GpuFlag = False, fix: FixFlag = False) -> None:
    """Check whether this computer can run a night, and print how to fix what is missing. Exits 1 if it cannot.

    The clouds that are set up are called to see what their tokens may do; nothing is changed there.
    """
    from flows.doctor.gpu_checks import examine_gpus  # noqa: PLC0415
    from flows.doctor.host_checks import examine  # noqa: PLC0415
    from flows.doctor.token_checks import examine_tokens  # noqa: PLC0415

    settings = read_settings()
    if fix:
        _ask_for_token(settings)
    checks = examine_gpus(settings) if gpu else [*examine(settings), *examine_tokens(settings)]
    _show(checks, as_json=as_json)
    if not all(check.is_good for check in checks):
        raise typer.Exit(1)


def _ask_for_token(settings: "Settings") -> None:
    """Store the token of a rented machine's own switch, unless there is one; it is neither shown nor logged."""
    from pydantic import SecretStr  # noqa: PLC0415

    from flows.defaults import DEFAULT, rented  # noqa: PLC0415
    from infra.clouds.by_name import RENTED  # noqa: PLC0415

    cloud = RENTED[rented(settings, DEFAULT)]
    token_of = cloud.SWITCH_TOKEN
    if token_of is None or cloud.why_no_switch(settings) is None:
        console.progress("the token of the machine's own switch is set already")
        return
    console.progress(
        "a rented machine deletes itself at its lease's expiry if it has a token. Create one in the cloud's console "
        f"with exactly these scopes: {', '.join(token_of.SCOPES)}. Every process on the machine can read it, and it "
        "can delete every machine of its team: use a team of its own"
    )
    answer = typer.prompt("Token (not shown; empty: none)", default="", show_default=False, hide_input=True, err=True)
    if not answer.strip():
        console.warn("no token was stored: nothing is rented without --accept-risk")
        return
    token = SecretStr(answer.strip())
    warning = token_of.check_token(settings, token)
    if warning is not None:
        console.warn(warning)
    console.progress(f"stored in {token_of.store_token(settings, token)}, readable by you only")


def _show(found: Sequence["Check"], *, as_json: bool) -> None:
    """Print one line per check, with advice where it failed."""
    if as_json:
        console.print_json([asdict(check) for check in found])
        return
    for check in found:
        mark, advice = ("ok ", "") if check.is_good else ("BAD", f": {check.advice}")
        console.line(f"{mark} {check.what:9} {check.found}{advice}")
