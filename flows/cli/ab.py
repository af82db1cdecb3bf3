"""The command that measures two engine versions, images or sets of flags against each other, on one lease."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from bench.errors import BadRunsError
from flows.cli.arguments import AcceptRiskFlag, JsonFlag, SuiteArgument, TargetOption, examples, read_settings
from flows.ending import exit_code_of, handle_stop_signals
from flows.night_request import NightRequest
from flows.show import console

commands = typer.Typer()
_SIDE = (
    "Engine version or image, NAME=value of its environment, and flags, in this order; default: as the suite has it."
)


@commands.command(
    epilog=examples(
        "nightbench ab suites/local.toml --b '--max-num-seqs 64' --plan",
        "nightbench ab suites/local.toml --a 0.31.1 --b 0.32.0 --plan",
    )
)
def ab(  # noqa: PLR0913, PLR0917 - each option is an argument
    suite: SuiteArgument,
    one: Annotated[str, typer.Option("--a", help=_SIDE)] = "",
    other: Annotated[str, typer.Option("--b", help="The same; changes are those of B against A.")] = "",
    target: TargetOption = "local",
    rounds: Annotated[int, typer.Option(min=2, max=25, help="Rounds of A B B A; each is one observation.")] = 4,
    plan: Annotated[bool, typer.Option("--plan", help="Print how many runs and server starts it takes.")] = False,
    accept_risk: AcceptRiskFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Measure A and B in turns on one lease, and print as Markdown what B lost or gained, with paired intervals.

    Exits 1 if a loss is confirmed or nothing could be compared, and 0 otherwise.
    """
    from flows.ab import parse_side, write_ab_suite  # noqa: PLC0415
    from infra.loadgen.suite_file import require_runnable  # noqa: PLC0415

    data = read_settings(accept_risk=accept_risk).data.absolute()
    sides = parse_side(one), parse_side(other)
    written = write_ab_suite(data, suite, sides, rounds)
    require_runnable(written, target, poc=False)
    if plan:
        _show_plan(written, target)
        return
    night = _night(data, written, target)
    _answer(data, night, rounds, (sides[0].text, sides[1].text), as_json=as_json)


def _show_plan(suite: Path, target: str) -> None:
    from bench.plan import model_loads  # noqa: PLC0415
    from infra.loadgen.suite_file import make_night  # noqa: PLC0415

    night = make_night(suite, target, poc=False, is_draft=True)
    console.line(f"{len(night.runs)} runs and {len(model_loads(night.runs))} server starts, by the suite {suite}")


def _night(data: Path, suite: Path, target: str) -> str:
    """Run the night and return its name, also where runs of it are bad."""
    from flows.cli.nights import run_nightly  # noqa: PLC0415

    handle_stop_signals(data)
    try:
        return run_nightly(NightRequest(str(suite), target), plain=True)
    except BadRunsError as bad:
        return bad.night
    except (KeyboardInterrupt, SystemExit) as stop:
        console.error("stopped: nothing was compared")
        raise typer.Exit(exit_code_of(stop)) from stop


def _answer(data: Path, night: str, rounds: int, texts: tuple[str, str], *, as_json: bool) -> None:
    from flows.show.markdown import comparison_markdown  # noqa: PLC0415
    from warehouse.trends.ab import compare_variants  # noqa: PLC0415

    found = compare_variants(data, night, rounds, texts)
    if as_json:
        console.print_json({"night": night, "rounds": rounds} | found.answer())
    else:
        page = shlex.join(["nightbench", "open", night])
        console.document(comparison_markdown(found.answer(), page))
    raise typer.Exit(int(found.found.has_loss or not found.found.pairs))
