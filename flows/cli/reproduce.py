"""The command that runs a published work again."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bench.errors import UsageError
from flows.cli.arguments import AcceptRiskFlag, MachineOption, PocFlag, TargetOption, examples, read_settings
from flows.show import console

if TYPE_CHECKING:
    from bench.catalog.works import Work
    from bench.suite.target import Target

commands = typer.Typer()
SUITES = Path(__file__).parents[2] / "suites"


@commands.command(
    epilog=examples("nightbench reproduce", "nightbench reproduce llama-70b-mi300x --poc"),
)
def reproduce(
    work: Annotated[str | None, typer.Argument(metavar="[WORK]", help="Published work; default: list them.")] = None,
    target: TargetOption = "local",
    poc: PocFlag = False,
    machine: MachineOption = None,
    yes: Annotated[bool, typer.Option("--yes", help="Run without the question.")] = False,
    accept_risk: AcceptRiskFlag = False,
) -> None:
    """Run a published work again: pin its suite, show the plan with its cost, ask once, run, and open its page.

    On this computer the work runs in miniature, without a question. A suite that has a lock keeps it. Exits as
    `nightbench run` does.
    """
    from bench.suite.target import parse_target  # noqa: PLC0415
    from flows.cli.nights import plan, run  # noqa: PLC0415

    if work is None:
        _show_works()
        return
    suite, where = suite_of(work), parse_target(target)
    if not where.is_scaled:
        _pin_once(suite)
    plan(suite, target=target, poc=poc, machine=machine)
    if not (where.is_scaled or yes):
        _require_consent(where)
    from infra.storage import store  # noqa: PLC0415

    ended, known = 0, set(store.nights(read_settings().data))
    try:
        run(suite, target=target, poc=poc, machine=machine, accept_risk=accept_risk)
    except typer.Exit as end:
        ended = end.exit_code
    _open_page(suite, known)
    raise typer.Exit(ended)


def _show_works() -> None:
    """Print each work, how much of it runs again, and its suite."""
    from catalog.read import read_work_tables, read_works  # noqa: PLC0415

    rows = []
    for one in read_works():
        tables = [table for table in read_work_tables() if table.work == one.work]
        counts = {"rows": sum(table.rows for table in tables), "run_again": sum(table.machine_rows for table in tables)}
        rows.append({"work": one.work, "title": one.title, "tables": len(tables), **counts, "suite": one.suite})
    console.table(rows, "published works")
    console.line("`nightbench reproduce WORK` runs one in miniature on this computer, and with --target at full size")


def suite_of(name: str) -> Path:
    """The suite file of a work, in the suites of this folder or else of this checkout; UsageError for another name."""
    from catalog.read import read_works  # noqa: PLC0415

    works: dict[str, Work] = {one.work: one for one in read_works()}
    if name not in works:
        raise UsageError(f"no published work is called {name!r}; there are: {', '.join(works)}")
    file = f"{works[name].suite}.toml"
    here = Path("suites") / file
    return here if here.exists() else SUITES / file


def _pin_once(suite: Path) -> None:
    """Pin a suite that has no lock; another lock would make another series."""
    from flows.cli.pin import pin  # noqa: PLC0415
    from infra.loadgen.suite_lock import lock_file  # noqa: PLC0415

    if lock_file(suite).exists():
        console.line(f"{lock_file(suite)} pins the suite; `nightbench pin {suite}` pins it to what is newest")
    else:
        pin(suite)


def _require_consent(where: "Target") -> None:
    """Return if a person at the terminal agrees; without a terminal, UsageError."""
    if not sys.stdin.isatty():
        raise UsageError(
            f"nothing was started: a run on {where.name} needs consent, and there is no terminal to ask at; add --yes"
        )
    if not typer.confirm("Run this night?"):
        console.line("nothing was started")
        raise typer.Exit


def _open_page(suite: Path, known: "set[str]") -> None:
    """Open the report of the suite over the night that is not among these; print its path. A failed night has none."""
    from flows.show.browser import open_page  # noqa: PLC0415
    from infra.loadgen.suite_file import parse_suite_file  # noqa: PLC0415
    from infra.storage import store  # noqa: PLC0415

    data, name = read_settings().data.absolute(), parse_suite_file(suite)[0].name
    for night in sorted(set(store.nights(data)) - known):
        page = data / "reports" / night / f"{name}.html"
        if page.exists():
            console.line(str(page))
            open_page(page)
