"""The command that searches the fastest flags of a suite's engine under its SLO."""

from functools import reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.cli.arguments import AcceptRiskFlag, JsonFlag, SuiteArgument, TargetOption, examples, read_settings
from flows.cli.candidate_night import run_candidate_night
from flows.ending import exit_code_of, handle_stop_signals
from flows.show import console

if TYPE_CHECKING:
    from bench.search.halving import Step, Tuning
    from bench.suite.engine_searches import Tune
    from infra.settings import Settings

commands = typer.Typer()


@commands.command(
    epilog=examples(
        "nightbench tune suites/local-tune.toml --plan",
        "nightbench tune suites/local-tune.toml --target local --plan",
    )
)
def tune(
    suite: SuiteArgument,
    target: TargetOption = "local",
    plan: Annotated[bool, typer.Option("--plan", help="Print how many runs and minutes it takes; run none.")] = False,
    accept_risk: AcceptRiskFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Search the flags of a suite's table `tune`: short runs of all, longer ones of the better half, and so on.

    The best one then runs at full length in turns with the suite's own flags, and is the answer if it is confirmed as
    better and keeps the SLO. Run the same command again after an interruption: nights that ended are not measured
    again, and one that was cut off is resumed. Exits 1 if no better flags are found.
    """
    from flows.tune.plan import planned, read_state, require_room  # noqa: PLC0415
    from flows.tune.suites import new_search  # noqa: PLC0415

    settings = read_settings(accept_risk=accept_risk)
    search, asked = new_search(suite, target)
    search = read_state(settings.data.absolute(), search)
    _require_runnable(settings, search, asked, target)
    nights = planned(settings, search, asked)
    for name, cost in nights:
        console.progress(f"{name}: {cost}")
    console.progress(f"together: {reduce(add, (cost for _name, cost in nights))}")
    if plan:
        return
    require_room(settings, search, asked)
    search, step = _run(settings, search, asked)
    _show(settings, search, step, as_json=as_json)
    raise typer.Exit(int(step.winner is None))


def _require_runnable(settings: "Settings", search: "Tuning", asked: "Tune", target: str) -> None:
    """Raise an error before the first night where its suite cannot be run on the target."""
    from bench.search.halving import next_step  # noqa: PLC0415
    from flows.tune.suites import write_night_suite  # noqa: PLC0415
    from infra.loadgen.suite_file import require_runnable  # noqa: PLC0415

    step = next_step(search)
    if not step.answer:
        require_runnable(write_night_suite(settings.data.absolute(), search, step, asked.rounds), target, poc=False)


def _run(settings: "Settings", search: "Tuning", asked: "Tune") -> tuple["Tuning", "Step"]:
    from flows.show.night_view import night_view  # noqa: PLC0415
    from flows.temporary_server import temporary_server  # noqa: PLC0415
    from flows.tune.run import run_search  # noqa: PLC0415

    data = settings.data.absolute()

    def run(suite: Path, begun: str | None) -> str:
        if begun:
            console.progress(f"night {begun} is resumed")
        return run_candidate_night(data, suite, search.target, begun)

    handle_stop_signals(data)
    try:
        with night_view(plain=True) as view, view.showing_log(), temporary_server():
            return run_search(settings, search, asked, run, console.progress)
    except (KeyboardInterrupt, SystemExit) as stop:
        console.error("stopped; what was measured is kept: run the same command again")
        raise typer.Exit(exit_code_of(stop)) from stop


def _show(settings: "Settings", search: "Tuning", step: "Step", *, as_json: bool) -> None:
    from flows.tune.plan import nights_of, spent  # noqa: PLC0415

    rows, cost = list(_rows(search)), spent(settings.data.absolute(), search)
    if as_json:
        winner = None if step.winner is None else search.candidate(step.winner).flags
        found = {"answer": step.answer, "flags": winner, "metric": search.metric, "cost": vars(cost)}
        console.print_json(found | {"nights": nights_of(search), "trials": rows})
        return
    console.table(rows, search.metric)
    console.line(step.answer)
    console.line(f"{cost}; nights: {', '.join(nights_of(search))}")


def _rows(search: "Tuning") -> list[dict[str, Any]]:
    """Every trial, by its night."""
    from bench.search.halving import dropped_for  # noqa: PLC0415

    every = [(str(number), one.trials) for number, one in enumerate(search.rounds, start=1)]
    every += [("confirmation", one.trials) for one in search.confirmations]
    return [
        {"round": name, "candidate": trial.candidate, "flags": " ".join(search.candidate(trial.candidate).flags)}
        | {"value": trial.value, "requests": trial.request_count, "within_slo": trial.within_slo}
        | {"dropped": dropped_for(search, trial, is_final=name == "confirmation")}
        for name, trials in every
        for trial in trials
    ]
