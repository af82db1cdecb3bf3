"""Arguments, options and examples that several commands share."""

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bench.errors import UsageError

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic_settings import SettingsError

    from infra.settings import Settings

SuiteArgument = Annotated[Path, typer.Argument(help="Suite file that defines what to measure.")]
TargetOption = Annotated[
    str, typer.Option(help="Where to measure: local, digitalocean, ssh:user@host[:port], or the URL of a server.")
]
PocFlag = Annotated[bool, typer.Option("--poc", help="Run only the first scenario, once.")]
MachineOption = Annotated[
    str | None,
    typer.Option(help="Measure only this machine of the suite, such as the host of your own that --target names."),
]
JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON.")]
ApplyRulesFlag = Annotated[
    bool,
    typer.Option("--apply-rules", help="Apply the fixes that the engine's rules name; the scenarios get other ids."),
]
AcceptRiskFlag = Annotated[
    bool,
    typer.Option(
        "--accept-risk",
        help="Rent a machine that cannot delete itself, and is billed without end if this computer fails.",
    ),
]
NightsArgument = Annotated[list[str] | None, typer.Argument(metavar="[NIGHT]...", help="Nights; default: all.")]
TtftOption = Annotated[float, typer.Option(min=1, help="Time to first token of the test server, in ms.")]
SqlLimitOption = Annotated[
    float, typer.Option(min=0.1, max=31_536_000, help="Stop a query that takes longer, in seconds; a year at most.")
]
ItlOption = Annotated[
    float, typer.Option(min=1, help="Time between two tokens of the test server, in ms; 20 is 50 tokens per second.")
]


def examples(*calls: str) -> str:
    """The end of a command's `--help`: calls that work, each on a line of its own. A test runs every one."""
    return "\n\n".join(("Examples:", *calls))


def read_settings(*, accept_risk: bool = False) -> "Settings":
    """Read the settings from the environment, once for a command; what the command calls receives them.

    `accept_risk` sets NIGHTBENCH_ACCEPT_RISK, since tasks and the processes of a night read it for themselves.
    """
    from pydantic import ValidationError  # noqa: PLC0415 - which an audit does without
    from pydantic_settings import SettingsError  # noqa: PLC0415

    from infra.settings import Settings  # noqa: PLC0415

    if accept_risk:
        os.environ["NIGHTBENCH_ACCEPT_RISK"] = "1"
    try:
        return Settings()
    except (ValidationError, SettingsError) as error:
        raise UsageError(_why_refused(error)) from error


def _why_refused(error: "ValidationError | SettingsError") -> str:
    """Which variable has a wrong value, and why; not the value, which may be a secret."""
    named = re.search(r'field "(\w+)"', str(error))
    name, why = (named[1] if named else "a setting"), "its value is not the JSON that it must be"
    if not named and hasattr(error, "errors"):
        first = error.errors(include_url=False, include_input=False)[0]
        name, why = str(first["loc"][0]) if first["loc"] else name, first["msg"]
    return f"NIGHTBENCH_{name.upper()}: {why}; docs/reference/settings.md has each setting"


def known_nights(data: Path) -> list[str]:
    """The nights of a data folder, oldest first; raises UsageError where it has none."""
    from infra.storage import store  # noqa: PLC0415
    from warehouse.report.simulated import why_no_nights  # noqa: PLC0415

    known = store.nights(data)
    if not known:
        why = why_no_nights(data) or f"no nights in {data / 'runs'}: run `nightbench run` first, or set --data"
        raise UsageError(why)
    return known
