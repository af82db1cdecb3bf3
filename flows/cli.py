"""The command line: `nightbench --help`.

Commands import what they need when they run: most answer in a fraction of a second, and only a night pays for Prefect.
"""

import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bench.errors import LeaseError, NightbenchError, ObjectStoreError, UsageError
from flows import show
from flows.audit import audit_command, import_command
from flows.ending import code_of, end_well
from flows.export import export_command
from infra.no_telemetry import quiet_environment

if TYPE_CHECKING:
    from infra.settings import Settings
    from warehouse.load import LoadSummary

app = typer.Typer(
    name="nightbench",
    help="Nightly inference benchmarks: rent, serve, measure, audit, give back, and keep what can be believed.",
    epilog="Exit codes: 0 good, 1 found something wrong, 2 wrong usage, 3 the outside world failed.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
SuiteArgument = Annotated[Path, typer.Argument(help="The suite file: what to measure.")]
TargetOption = Annotated[str, typer.Option(help="Where to measure: local, digitalocean, ssh:user@host[:port].")]
JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON.")]
STREAMS = "1,10,100,500,1000,2000"


@app.callback()
def start(
    data: Annotated[
        Path | None, typer.Option(help="Where run folders, lake and warehouse.duckdb live [NIGHTBENCH_DATA, ./data].")
    ] = None,
) -> None:
    """Set up what every command shares."""
    quiet_environment()
    if data is not None:
        os.environ["NIGHTBENCH_DATA"] = str(data.absolute())


def _settings() -> "Settings":
    from infra.settings import Settings  # noqa: PLC0415 - pydantic, which an audit does without

    return Settings()


@app.command()
def run(
    suite: SuiteArgument = Path("suites/local.toml"),
    target: TargetOption = "local",
    poc: Annotated[bool, typer.Option("--poc", help="Only the first scenario, once.")] = False,
    resume: Annotated[str | None, typer.Option(metavar="NIGHT", help="Run only what this night is missing.")] = None,
) -> None:
    """Run the whole chain: plan, rent, serve, measure, give back, load, judge, report.

    Exits 1 when any measurement is rejected or failed, or was not run.
    """
    from tasks.places import known_target  # noqa: PLC0415

    settings = _settings()
    if resume is None:
        from tasks.planning import read_suite  # noqa: PLC0415

        read_suite(suite)  # what is wrong is said before Prefect is started
    else:
        from tasks.salvage import find_night  # noqa: PLC0415

        target = find_night(settings, resume, show.progress).target
    target = known_target(settings, target)
    end_well()
    from flows.nightly import nightly  # noqa: PLC0415

    try:
        summary = nightly(suite=str(suite), target=target, poc=poc, resume=resume)
    except (KeyboardInterrupt, SystemExit) as stop:
        show.error("stopped; what was measured is kept: `nightbench run --resume NIGHT` measures and loads the rest")
        raise typer.Exit(code_of(stop)) from stop
    show.night(_settings().data, summary.night)
    _end(summary)


def _end(summary: "LoadSummary") -> None:
    """Exit by what a night came to: 1 where a result is bad, 3 where one is not in the bucket that it should be in."""
    from tasks.salvage import not_uploaded  # noqa: PLC0415

    left = not_uploaded(_settings(), summary.night)
    if left:
        show.warn(f"{len(left)} runs are not uploaded: nightbench upload tries again")
    if set(summary.verdicts) - {"accepted", "suspect"}:
        raise typer.Exit(1)
    if left:
        raise typer.Exit(ObjectStoreError.exit_code)


NightsArgument = Annotated[list[str] | None, typer.Argument(metavar="[NIGHT]...", help="All, when left out.")]


@app.command()
def upload(nights: NightsArgument = None) -> None:
    """Upload to the bucket what is not there yet; exits 3 where something is still missing."""
    from infra.storage.store import nights as nights_here  # noqa: PLC0415
    from tasks.salvage import require_place, upload_night  # noqa: PLC0415

    settings = _settings()
    require_place(settings)
    asked, failed = nights or nights_here(settings.data), False
    if not asked:
        show.line(f"there is no night in {settings.data / 'runs'} to upload")
    for night in asked:
        warnings = upload_night(settings, night, settings.s3_patience_s)
        failed |= bool(warnings)
        for warning in warnings:
            show.error(warning)
        if not warnings:
            show.line(f"{night}: all of it is uploaded")
    if failed:
        raise typer.Exit(ObjectStoreError.exit_code)


@app.command()
def fetch(
    nights: Annotated[list[str] | None, typer.Argument(metavar="[NIGHT]...", help="Lists them, when left out.")] = None,
) -> None:
    """Bring nights back from the bucket; nothing that is here is overwritten. Then: nightbench rebuild."""
    from tasks.salvage import fetch as fetch_night  # noqa: PLC0415
    from tasks.salvage import nights_there  # noqa: PLC0415

    settings = _settings()
    for night in nights or []:
        show.line(f"{night}: {fetch_night(settings, night)} runs fetched")
    if not nights:
        show.line("\n".join(nights_there(settings)) or "the bucket has no night")


@app.command()
def prepare(
    suite: SuiteArgument, target: Annotated[str, typer.Option(help="Where nights will run.")] = "digitalocean"
) -> None:
    """Make the golden image with the software that a suite's nights need, where there is none yet; measure nothing.

    Rents one machine for about an hour: `nightbench plan` says what that costs. Prints the image's name.
    """
    from tasks.golden import require_images  # noqa: PLC0415
    from tasks.planning import read_suite  # noqa: PLC0415

    require_images(_settings(), target)
    read_suite(suite)
    end_well()
    from flows.prepare import prepare as prepare_flow  # noqa: PLC0415

    try:
        image = prepare_flow(suite=str(suite), target=target)
    except (KeyboardInterrupt, SystemExit) as stop:
        show.error("stopped; the machine is given back: `nightbench leases` shows it")
        raise typer.Exit(code_of(stop)) from stop
    show.line(image)


@app.command()
def plan(
    suite: SuiteArgument,
    target: TargetOption = "local",
    poc: Annotated[bool, typer.Option("--poc", help="Only the first scenario, once.")] = False,
    download_mb_per_s: Annotated[
        float | None, typer.Option(min=1, help="How fast the hub gives the model, in MB/s [300].")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Show what would run, in which order, how long each stage takes and what it costs; touches nothing.

    Prices are the cloud's own where a token is set, else those of the catalogue, with their date. A host of your own
    is not asked anything: the plan says what it must have, and the night looks.
    """
    from tasks.forecast import forecast  # noqa: PLC0415
    from tasks.places import clouds, planned_target, why_unreachable  # noqa: PLC0415
    from tasks.planning import make_night  # noqa: PLC0415

    settings = _settings()
    target = planned_target(target)
    night = make_night(suite, target, poc=poc, is_draft=True)
    found = forecast(night, clouds(settings).get(target), download_mb_per_s)
    why = why_unreachable(settings, target)
    if why is not None:
        found = replace(found, doubts=(*found.doubts, f"the night would be refused: {why}"))
    show.plan(night, found, as_json=as_json)


@app.command()
def reap(
    everything: Annotated[bool, typer.Option("--all", help="Also what a living night still uses.")] = False,
) -> None:
    """Give back every machine that is past its lease, whose night is dead, or that nobody has on record.

    Needs no record of its own: a machine's name says that it is ours and until when. Exits 3 where one stays.
    """
    from tasks.leases import give_back_leftovers  # noqa: PLC0415

    reaped = give_back_leftovers(_settings(), everything=everything, say=show.progress)
    show.reaped(reaped)
    if reaped.failed:
        raise typer.Exit(LeaseError.exit_code)


@app.command()
def leases(as_json: JsonFlag = False) -> None:
    """Show what is rented now, what was, and what each stage of it cost; and what is kept and billed by the month."""
    from tasks.lease_views import lease_views, models_kept, what_is_kept  # noqa: PLC0415
    from tasks.places import clouds, volume_book  # noqa: PLC0415

    settings = _settings()
    views = lease_views(settings)
    kept = [*what_is_kept(clouds(settings), volume_book(settings).kept()), *models_kept(settings)]
    show.leases(views, kept, as_json=as_json)


@app.command()
def calibrate(
    streams: Annotated[str, typer.Option(help="How many at once, one after another: 1,10,100.")] = STREAMS,
    ttft_ms: Annotated[float, typer.Option(min=1, help="The server's time to its first token.")] = 200.0,
    itl_ms: Annotated[float, typer.Option(min=1, help="Its gap between two tokens: 20 is 50 tokens a second.")] = 20.0,
    workers: Annotated[int, typer.Option(min=1, help="Processes of the client.")] = 1,
    lock_step: Annotated[bool, typer.Option("--lock-step", help="All streams are due at once, as engines do.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Measure the load client's own error on this host, against a server whose every write is known."""
    from infra.loadgen.calibration import CellOptions, cells, keep_table, table_of  # noqa: PLC0415
    from infra.loadgen.calibration import calibrate as measure_cells  # noqa: PLC0415

    settings, began = _settings(), time.monotonic()
    asked = cells(_counts(streams), ttft_ms, itl_ms, CellOptions(workers, lock_step))
    found = table_of(tuple(measure_cells(asked, settings.cache, show.progress)), began)
    keep_table(settings.data, found)
    show.calibration(found, as_json=as_json)


@app.command()
def crosscheck(
    streams: Annotated[int | None, typer.Option(min=1, help="How many at once against the truth server [100].")] = None,
    ttft_ms: Annotated[float, typer.Option(min=1, help="That server's time to its first token.")] = 200.0,
    itl_ms: Annotated[float, typer.Option(min=1, help="Its gap between two tokens: 20 is 50 tokens a second.")] = 20.0,
    suite: Annotated[Path | None, typer.Option(help="Check on this suite's engine.")] = None,
    scenario: Annotated[str | None, typer.Option(help="The load of this scenario of the suite.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Run the meter and vLLM's own clients on one load; show what differs, and what of it their known errors explain.

    Without a suite they load a server whose every write is known, with 64 tokens in and 100 out.
    """
    from infra.engines.install import own_engine  # noqa: PLC0415
    from infra.loadgen import crosscheck as checking  # noqa: PLC0415
    from tasks.planning import pick_scenario  # noqa: PLC0415

    if (suite is None) != (scenario is None) or (suite is not None and streams is not None):
        raise UsageError("give --streams for the truth server, or --suite and --scenario for a real engine")
    settings = _settings()
    asked = None if suite is None or scenario is None else pick_scenario(suite, scenario)
    with checking.ground(own_engine(settings, show.progress), settings.cache, show.progress) as here:
        if asked is None:
            sides = checking.check_streams(here, streams or 100, checking.Schedule(ttft_ms, itl_ms))
        else:
            sides = checking.check_engine(here, *asked, settings.data.absolute() / "models")
    show.crosscheck(sides, as_json=as_json)


def _counts(text: str) -> list[int]:
    """Numbers of streams, as `--streams` lists them."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise UsageError(f"--streams {text!r} is not a list of whole numbers such as 1,10,100")
    return [int(part) for part in parts]


@app.command()
def sql(
    query: Annotated[str, typer.Argument(help='For example "SELECT * FROM results".')],
    as_json: JsonFlag = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
) -> None:
    """Ask the warehouse; `nightbench sql "SHOW TABLES"` lists what there is."""
    from warehouse.lake.query import run_sql  # noqa: PLC0415

    if as_json and as_csv:
        raise UsageError("--json and --csv exclude each other")
    show.answer(run_sql(_settings().data.absolute(), query), "json" if as_json else "csv" if as_csv else "table")


@app.command()
def rebuild() -> None:
    """Make lake and warehouse anew from the run folders; the answers stay the same."""
    from warehouse.load import rebuild as load_every_night  # noqa: PLC0415

    summaries = load_every_night(_settings().data.absolute(), lambda night: show.line(f"loaded {night}"))
    warnings = [warning for summary in summaries for warning in summary.warnings]
    for warning in warnings:
        show.warn(warning)
    if warnings:
        raise typer.Exit(1)


@app.command()
def report(night: Annotated[str | None, typer.Argument(help="A night's id; the newest when left out.")] = None) -> None:
    """Write a night's page again and say where it is."""
    from infra.storage.store import nights  # noqa: PLC0415
    from warehouse.report.page import write_report  # noqa: PLC0415

    data = _settings().data.absolute()
    known = nights(data)
    if not known:
        raise UsageError(f"there is no night in {data / 'runs'} yet: nightbench run makes one")
    show.line(str(write_report(data, night or known[-1])))


@app.command()
def doctor(as_json: JsonFlag = False) -> None:
    """Say what this computer has, what is missing, and what to do about it; exits 1 if a night could not run."""
    from flows.doctor import examine  # noqa: PLC0415

    checks = examine(_settings())
    show.checks(checks, as_json=as_json)
    if not all(check.is_good for check in checks):
        raise typer.Exit(1)


app.command("audit")(audit_command)
app.command("export")(export_command)
app.command("import")(import_command)


def main() -> None:
    """Run the command line; an error we understand is one sentence, and its class decides the exit code."""
    try:
        app()
    except NightbenchError as error:
        show.error(str(error))
        sys.exit(error.exit_code)
