"""The command that finds the engine version or image at which a number moved."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from flows.cli.arguments import JsonFlag, TargetOption, examples, read_settings
from flows.cli.candidate_night import run_candidate_night
from flows.ending import exit_code_of, handle_stop_signals
from flows.show import console

if TYPE_CHECKING:
    from bench.trends.bisect import Bisection, Step

commands = typer.Typer()


@commands.command(
    epilog=examples(
        "nightbench bisect tpot_p50_ms --good 0.31.0 --bad 0.32.0 --images versions.txt --plan",
        "nightbench bisect ttft_p50_ms --good 0.31.1 --bad 0.32.0 --images versions.txt --plan",
    )
)
def bisect(  # noqa: PLR0913, PLR0917 - each option is an argument
    metric: Annotated[str, typer.Argument(help="Metric that moved, such as tpot_p50_ms.")],
    good: Annotated[str, typer.Option(help="Engine version or image before the change.")],
    bad: Annotated[str, typer.Option(help="Engine version or image after it.")],
    images: Annotated[
        Path | None,
        typer.Option(help="File of versions or images, one a line, oldest first; default: what --over says."),
    ] = None,
    over: Annotated[
        Literal["warehouse", "versions"],
        typer.Option(help="Candidates: the engine versions of the warehouse, or every release that has a lock."),
    ] = "warehouse",
    suite: Annotated[Path, typer.Option(help="Suite that measures each candidate.")] = Path("suites/local.toml"),
    scenario: Annotated[
        str | None,
        typer.Option(help="Only scenario whose numbers count; default: the mean change of all of the suite."),
    ] = None,
    target: TargetOption = "local",
    budget_usd: Annotated[
        float | None, typer.Option(min=0, help="Stop before all nights together cost more; default: no limit.")
    ] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Print how many nights it takes; run none.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Find the engine version or image at which a number moved, by a night of each one that is measured.

    Run the same command again after an interruption: nights that ended are not measured again, and one that was cut off
    is resumed. Exits 1 if no change is found.
    """
    from bench.engines.versions import llama_cpp_tag  # noqa: PLC0415
    from bench.suite.target import parse_target  # noqa: PLC0415
    from bench.trends.bisect import Bisection, candidates_between, leases_expected  # noqa: PLC0415
    from flows.bisect import (  # noqa: PLC0415
        known_versions,
        read_candidates,
        require_listed,
        require_metric,
        require_releases_of,
        require_scenario,
    )
    from infra.engines.releases import locked_releases, locked_tags  # noqa: PLC0415

    require_metric(metric)
    if scenario is not None:
        require_scenario(scenario, suite, target)
    settings = read_settings()
    data = settings.data.absolute()
    if images is not None:
        listed = read_candidates(images)
    elif over == "versions":
        listed = list(locked_tags() if llama_cpp_tag(good) else locked_releases())
    else:
        listed = known_versions(data)
    require_listed(listed, (good, bad))
    names = candidates_between(listed, good, bad)
    require_releases_of(names, suite, target, settings)
    where = parse_target(target).name
    search = Bisection(metric=metric, suite=str(suite.absolute()), target=where, candidates=names, scenario=scenario)
    fewest, most = leases_expected(len(names))
    console.progress(
        f"{len(names)} candidates from {good} to {bad}: {fewest} nights at least, {most} at most; "
        f"{_cost(suite, target, fewest, most)}"
    )
    if plan:
        return
    search, step = _run(data, search, budget_usd)
    _show(search, step, as_json=as_json)
    raise typer.Exit(int(not step.is_found))


def _cost(suite: Path, target: str, fewest: int, most: int) -> str:
    """What so many nights of the suite would take: as long as earlier ones did here, or else as its plan says."""
    from flows.bisect import earlier_minutes  # noqa: PLC0415
    from infra.bootstrap import clouds, planned_target  # noqa: PLC0415
    from infra.leases.forecast import forecast_night  # noqa: PLC0415
    from infra.loadgen.suite_file import make_night  # noqa: PLC0415
    from infra.loadgen.suite_lock import read_lock  # noqa: PLC0415

    settings, target = read_settings(), planned_target(target).name
    lock = read_lock(suite)
    night = make_night(suite, target, poc=False, is_draft=True)
    expected = forecast_night(settings, night, clouds(settings).get(target), None, () if lock is None else lock.prices)
    known = earlier_minutes(settings.data, night.suite.name, target)
    minutes = expected.minutes if known is None else known
    usd = expected.usd if known is None or expected.usd_per_hour is None else expected.usd_per_hour * known / 60
    price = "a price that is not known" if usd is None else f"{fewest * usd:.2f} to {most * usd:.2f} USD"
    source = "by the suite's plan" if known is None else "as earlier nights of the suite took"
    return f"{minutes:.0f} min a night {source}, {fewest * minutes / 60:.1f} to {most * minutes / 60:.1f} h and {price}"


def _run(data: Path, search: "Bisection", budget_usd: float | None) -> tuple["Bisection", "Step"]:
    from flows.bisect import measure_by, run_search  # noqa: PLC0415
    from flows.show.night_view import night_view  # noqa: PLC0415
    from flows.temporary_server import temporary_server  # noqa: PLC0415
    from infra.leases.lease_reports import night_usd  # noqa: PLC0415

    def run(candidate: str, suite: Path, begun: str | None) -> str:
        console.progress(f"measuring {candidate}" + (f": night {begun} is resumed" if begun else ""))
        return run_candidate_night(data, suite, search.target, begun)

    handle_stop_signals(data)
    try:
        with night_view(plain=True) as view, view.showing_log(), temporary_server():
            return run_search(data, search, measure_by(data, search, run), partial(night_usd, data), budget_usd)
    except (KeyboardInterrupt, SystemExit) as stop:
        console.error("stopped; what was measured is kept: run the same command again")
        raise typer.Exit(exit_code_of(stop)) from stop


def _show(search: "Bisection", step: "Step", *, as_json: bool) -> None:
    rows = [one.model_dump() | {"value": one.value} for one in search.measured]
    if as_json:
        console.print_json(
            {"is_found": step.is_found, "last_good": step.good, "first_bad": step.bad, "reason": step.reason}
            | {"skipped": step.skipped, "measured": rows}
        )
        return
    shown = ("candidate", "night", "value", "reason")
    console.table([{name: row[name] for name in shown} for row in rows], search.metric)
    for one in step.skipped:
        console.line(f"{one} has no accepted value and was passed over")
    console.line(step.reason)
