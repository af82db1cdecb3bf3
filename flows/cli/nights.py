"""Commands that plan, run and prepare nights."""

import gc
import os
from contextlib import ExitStack
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bench.errors import BadRunsError, ObjectStoreError
from flows.cli.arguments import (
    AcceptRiskFlag,
    ApplyRulesFlag,
    JsonFlag,
    MachineOption,
    PocFlag,
    SuiteArgument,
    TargetOption,
    examples,
    read_settings,
)
from flows.ending import exit_code_of, handle_stop_signals
from flows.night_request import NightRequest
from flows.show import console
from tasks.progress import STREAM

if TYPE_CHECKING:
    from bench.record import NightRecord
    from bench.suite.target import Target
    from infra.settings import Settings

commands = typer.Typer()


@commands.command(epilog=examples("nightbench run --poc", "nightbench run --resume 2026-03-01T010000Z"))
def run(  # noqa: PLR0913, PLR0917 - each option is an argument
    suite: SuiteArgument = Path("suites/local.toml"),
    target: TargetOption = "local",
    poc: PocFlag = False,
    resume: Annotated[
        str | None, typer.Option(metavar="NIGHT", help="Resume this night: run only its missing runs.")
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait while another night measures on the same machine.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Run a suite whose model or load does not fit its machine; records say so.")
    ] = False,
    apply_rules: ApplyRulesFlag = False,
    machine: MachineOption = None,
    accept_risk: AcceptRiskFlag = False,
    plain: Annotated[
        bool, typer.Option("--plain", help="Print a line for each stage, also on a terminal, in place of a live view.")
    ] = False,
) -> None:
    """Run a night: plan, rent, serve, measure, release the machine, load, judge and report.

    Exits 1 if any run is rejected, failed or was not run, and 3 if another night measures on this computer.
    """
    from infra.processes.machine_lock import MachineLock  # noqa: PLC0415
    from infra.storage import store  # noqa: PLC0415

    settings = read_settings(accept_risk=accept_risk)
    asked = NightRequest(str(suite), target, poc, resume, wait, force, apply_rules, machine)
    where = _checked_target(settings, asked)
    if where.is_here and not wait:
        MachineLock(settings.machine_lock, settings.data).require_free()  # before Prefect starts
    _require_folders(settings)
    known = set(store.nights(settings.data))
    handle_stop_signals(settings.data)
    exit_code = 0
    try:
        night = run_nightly(replace(asked, target=where.name), plain=plain)
    except (KeyboardInterrupt, SystemExit) as stop:
        console.error(f"stopped; {_how_to_resume(settings, resume or known)}")
        raise typer.Exit(exit_code_of(stop)) from stop
    except BadRunsError as bad:
        night, exit_code = bad.night, bad.exit_code
    from flows.show.night_end import show_night  # noqa: PLC0415

    show_night(settings.data, night)
    upload = _exit_code_of_upload(settings, night)
    raise typer.Exit(exit_code or upload)


def _require_folders(settings: "Settings") -> None:
    """Raise UsageError where a folder that each night needs cannot be written, before Prefect starts."""
    from nights.durable import require_writable  # noqa: PLC0415

    prefect_home = Path(os.environ.get("PREFECT_HOME") or Path.home() / ".prefect").expanduser()
    require_writable(settings.data.absolute(), "--data")
    require_writable(settings.cache, "NIGHTBENCH_CACHE")
    require_writable(prefect_home, "PREFECT_HOME")


def run_nightly(asked: NightRequest, *, plain: bool) -> str:
    """Run the flow and return the name of its night, on the server that PREFECT_API_URL names or a temporary one."""
    from flows.show.night_view import night_view  # noqa: PLC0415

    with night_view(plain=plain) as view, ExitStack() as until_end:
        with STREAM.stage("start"):
            gc.disable()  # what imports make stays: to look through it costs a second of CPU time
            from flows.temporary_server import temporary_server  # noqa: PLC0415

            until_end.enter_context(view.showing_log())
            until_end.enter_context(temporary_server())
            from flows.end_state import loaded  # noqa: PLC0415
            from flows.lost_server import outcome_without_server  # noqa: PLC0415
            from flows.nightly import nightly  # noqa: PLC0415

            gc.freeze()
            gc.enable()
        flow = partial(nightly, **asdict(asked))
        return loaded(outcome_without_server(flow)).night


def _checked_target(settings: "Settings", asked: NightRequest) -> "Target":
    """The target of a night; raises before Prefect starts where it is unknown or the suite cannot be run."""
    from infra.bootstrap import known_target, require_second_net  # noqa: PLC0415
    from infra.loadgen.suite_file import refuse_forced_resume, require_runnable  # noqa: PLC0415

    options, target = asked.options(), asked.target
    refuse_forced_resume(asked.resume, **options)
    if asked.resume is None:
        require_runnable(Path(asked.suite), target, poc=asked.poc, **options)
    else:
        from infra.storage.bucket import find_night  # noqa: PLC0415

        target = find_night(settings, asked.resume, console.progress).target
    where = known_target(settings, target)
    require_second_net(settings, where.name)
    return where


def _how_to_resume(settings: "Settings", night: "str | set[str]") -> str:
    """The next step after a stop; of a new night, `night` is the set of nights that existed before it."""
    from infra.storage import store  # noqa: PLC0415

    names = [night] if isinstance(night, str) else sorted(set(store.nights(settings.data)) - night)
    if not names:
        return "the night had not begun and nothing was rented: run the same command again"
    return f"finished runs are kept: `nightbench run --resume {names[-1]}` runs the missing ones"


def _exit_code_of_upload(settings: "Settings", night: str) -> int:
    """3 with a warning if a run is missing in the bucket, else 0."""
    from infra.storage.bucket import runs_not_uploaded  # noqa: PLC0415

    left = runs_not_uploaded(settings, night)
    if left:
        console.warn(f"{len(left)} runs are not uploaded: run `nightbench upload {night}`")
    return ObjectStoreError.exit_code if left else 0


LLAMA = "suites/llama-3.3-70b-mi300x.toml"


@commands.command(
    epilog=examples(
        "nightbench plan suites/endpoint.toml --target http://127.0.0.1:8000",
        f"nightbench plan {LLAMA} --target digitalocean",
    )
)
def plan(  # noqa: PLR0913, PLR0917 - each option is an argument
    suite: SuiteArgument,
    target: TargetOption = "local",
    poc: PocFlag = False,
    download_mb_per_s: Annotated[
        float | None, typer.Option(min=1, help="Download speed of the model from the hub, in MB/s; default: 300.")
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Print every scenario; otherwise one line for a hundred of many.")
    ] = False,
    apply_rules: ApplyRulesFlag = False,
    machine: MachineOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Print the runs of a night in order, with the expected time and cost of each stage. Rents and writes nothing.

    Prices come from the cloud if a token is set, otherwise from the suite's lock or the catalogue, with their date. A
    host of your own is not contacted: the plan lists its requirements, and the night checks them.
    """
    from bench.machine.of_target import left_to_you  # noqa: PLC0415
    from flows.show.plan import show_plan  # noqa: PLC0415
    from infra.bootstrap import (  # noqa: PLC0415
        clouds,
        if_computer_dies,
        nets,
        planned_target,
        spending_of_month,
        why_refused_unguarded,
        why_unreachable,
    )
    from infra.engines.releases import require_releases  # noqa: PLC0415
    from infra.leases.forecast import forecast_night  # noqa: PLC0415
    from infra.loadgen.suite_file import make_night, parse_suite_file  # noqa: PLC0415
    from infra.loadgen.suite_lock import read_lock  # noqa: PLC0415
    from tasks.repeats import plan_repeats  # noqa: PLC0415
    from warehouse.judging.suite_expectations import require_expectations  # noqa: PLC0415

    settings = read_settings()
    where = planned_target(target)
    target = where.name
    parsed = parse_suite_file(suite)
    night = make_night(suite, target, poc=poc, is_draft=True, apply_rules=apply_rules, machine=machine, parsed=parsed)
    require_expectations(night)
    require_releases(night.suite, where, settings)
    prices = () if (lock := read_lock(suite)) is None else lock.prices
    night = night if poc else plan_repeats(settings, night, prices)
    expected = forecast_night(settings, night, clouds(settings).get(target), download_mb_per_s, prices)
    minutes = max(one.lease_minutes for one in night.suite.machines)
    unguarded = why_refused_unguarded(settings, target, minutes, expected.usd_per_hour)
    usd_max = sum(one.forecast.usd_max or 0.0 for one in expected.machines)
    over_month = spending_of_month(settings).why_exceeded(usd_max)
    whys = filter(None, (why_unreachable(settings, where), unguarded, over_month))
    refused = [f"the night would be refused: {why}" for why in whys]
    dies = if_computer_dies(settings, target, minutes, expected.usd_per_hour)
    doubts = (*_unpinned(night, suite), *refused, *([] if dies is None else [dies]))
    doubts += () if machine else tuple(left_to_you(parsed[0], where))
    show_plan(night, expected.with_doubts(doubts), nets(settings, target), as_json=as_json, full=full)


def _unpinned(night: "NightRecord", suite: Path) -> list[str]:
    """A sentence for each reference of a night that moves."""
    from bench.suite.pins import moving_references  # noqa: PLC0415

    return [
        f"{key} = {reference!r} is not pinned: run `nightbench pin {suite}` before the night"
        for key, reference in moving_references(night.suite).items()
    ]


@commands.command(epilog=examples(f"nightbench prepare {LLAMA}", f"nightbench prepare {LLAMA} --target digitalocean"))
def prepare(
    suite: SuiteArgument,
    target: Annotated[
        str, typer.Option(help="Cloud that nights will run on; default: the one that is set up.")
    ] = "default",
    force: Annotated[
        bool, typer.Option("--force", help="Prepare a suite whose nights need --force, since they do not fit.")
    ] = False,
    apply_rules: ApplyRulesFlag = False,
    accept_risk: AcceptRiskFlag = False,
) -> None:
    """Build the golden image for a suite: a machine image with the software its nights need. Measures nothing.

    Rents one machine for about an hour, unless the image exists; `nightbench plan` prints the cost. Prints the image's
    name.
    """
    from flows.defaults import rented  # noqa: PLC0415
    from infra.bootstrap import require_second_net  # noqa: PLC0415
    from infra.loadgen.suite_file import require_runnable  # noqa: PLC0415
    from tasks.golden import require_images  # noqa: PLC0415

    settings = read_settings(accept_risk=accept_risk)
    target = rented(settings, target)
    require_images(settings, target)
    require_second_net(settings, target)
    require_runnable(suite, target, poc=False, force=force, apply_rules=apply_rules)
    handle_stop_signals(settings.data)
    from flows.prepare import prepare as prepare_flow  # noqa: PLC0415

    try:
        image = prepare_flow(suite=str(suite), target=target, force=force, apply_rules=apply_rules)
    except (KeyboardInterrupt, SystemExit) as stop:
        console.error("stopped; the machine is released: `nightbench leases` shows its state and cost")
        raise typer.Exit(exit_code_of(stop)) from stop
    console.line(image)
