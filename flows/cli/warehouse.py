"""Commands that query, rebuild and extend the warehouse, and write reports."""

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bench.errors import ToldBesideError, UnknownFormatError, UnreadableResultError, UsageError
from flows.cli.arguments import JsonFlag, SqlLimitOption, examples, known_nights, read_settings
from flows.show import console

if TYPE_CHECKING:
    from warehouse.histories import ImportedHistory
    from warehouse.importers.history.long_table import HistoryOptions
    from warehouse.load import LoadSummary

commands = typer.Typer()


@commands.command(
    epilog=examples('nightbench sql "SHOW TABLES"', 'nightbench sql "FROM results" --csv'),
    context_settings={"ignore_unknown_options": True},  # a query may begin with a comment, which begins with `--`
)
def sql(
    query: Annotated[str, typer.Argument(help='SQL statement, for example "SELECT * FROM results".')],
    as_json: JsonFlag = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    limit: SqlLimitOption = 600.0,
) -> None:
    """Query the warehouse with SQL. Exits 2 if the query fails, or takes longer than its limit."""
    from flows.show.results import show_answer  # noqa: PLC0415
    from warehouse.lake.query import run_sql  # noqa: PLC0415

    if as_json and as_csv:
        raise UsageError("--json and --csv exclude each other: pass one of them")
    found = run_sql(read_settings().data.absolute(), query, limit_s=limit)
    show_answer(found, "json" if as_json else "csv" if as_csv else "table")


@commands.command(epilog=examples("nightbench shell", "nightbench shell < docs/how-to/queries/slowest-hosts.sql"))
def shell(limit: SqlLimitOption = 600.0) -> None:
    """Query the warehouse statement by statement, read-only; a load never waits for it.

    A statement ends with a semicolon at the end of a line; .quit ends the shell. Exits 2 if a statement failed.
    """
    from flows.show.shell import run_shell, typed  # noqa: PLC0415

    if not run_shell(read_settings().data.absolute(), typed(), limit):
        raise typer.Exit(2)


@commands.command(epilog=examples("nightbench load 2026-03-01T010000Z", "nightbench load --help"))
def load(nights: Annotated[list[str], typer.Argument(metavar="NIGHT...", help="Nights of this data folder.")]) -> None:
    """Load nights into the warehouse, judged: those that `nightbench fetch` downloaded, for example.

    Other nights stay as they are. Exits 1 if some files of a night cannot be read.
    """
    from warehouse.load import load_night  # noqa: PLC0415

    data = read_settings().data.absolute()
    _show_loaded([_loaded(load_night(data, night)) for night in nights])


@commands.command(epilog=examples("nightbench rebuild", "nightbench --data data rebuild --prune --yes"))
def rebuild(
    is_pruned: Annotated[
        bool,
        typer.Option("--prune", help="Also remove what the lake has and this data folder does not; asks before."),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Remove without the question of --prune.")] = False,
) -> None:
    """Load every night and import of this data folder again. Queries return the same answers afterwards.

    What only the lake has stays: nights, imports and histories of other computers. Exits 2 if there is nothing to load.
    """
    from warehouse.lake.swap import lost_files  # noqa: PLC0415
    from warehouse.rebuild import rebuild as load_everything  # noqa: PLC0415

    data = read_settings().data.absolute()
    gone = _to_remove(data, is_agreed=yes) if is_pruned else []
    summaries = load_everything(data, lambda night: console.line(f"loaded {night}"), prune=gone)
    for name in gone:
        console.line(f"removed {name}")
    lost = lost_files()
    for name in lost:
        console.warn(f"{name} is missing in the bucket of the lake: run nightbench rebuild on the computer that has it")
    _show_loaded(summaries)
    if lost:
        raise typer.Exit(1)


def _to_remove(data: Path, *, is_agreed: bool) -> list[str]:
    """List what only the lake has, and return it if a person or --yes agrees; without a terminal, UsageError."""
    from warehouse.lake.bucket.location import lake_name  # noqa: PLC0415
    from warehouse.rebuild import not_here, require_something_to_load  # noqa: PLC0415

    require_something_to_load(data)
    gone = not_here(data)
    for name in gone:
        console.line(f"{name}: in {lake_name(data)} and not in {data}")
    if not gone or is_agreed:
        return gone
    if not sys.stdin.isatty():
        raise UsageError("nothing was removed: --prune asks before it removes, and there is no terminal; add --yes")
    if not typer.confirm(f"Remove these {len(gone)} from the lake, for everybody who reads it?"):
        console.line("nothing was removed")
        raise typer.Exit
    return gone


def _loaded(summary: "LoadSummary") -> "LoadSummary":
    counted = ", ".join(f"{count} {verdict}" for verdict, count in summary.verdicts.items()) or "no runs"
    console.line(f"loaded {summary.night}: {counted}")
    return summary


def _show_loaded(summaries: "list[LoadSummary]") -> None:
    """Print the warnings of what was loaded, and exit 1 if there are any."""
    warnings = [warning for summary in summaries for warning in summary.warnings]
    for warning in warnings:
        console.warn(warning)
    if warnings:
        raise typer.Exit(1)


@commands.command(epilog=examples("nightbench report", "nightbench report 2026-03-01T010000Z"))
def report(
    night: Annotated[str | None, typer.Argument(help="Night; default: the newest, or the newest of the suite.")] = None,
    suite: Annotated[Path | None, typer.Option(help="Print the tables of this suite file's report.")] = None,
    output: Annotated[
        Literal["md", "html", "json", "csv"], typer.Option("--format", help="Format of a suite's report.")
    ] = "md",
) -> None:
    """Write the report page of a night and print its path; with --suite, print the tables of a suite.

    Published figures stand beside a suite's numbers, with their ratio where the terms are equal.
    """
    from warehouse.report.page import write_report  # noqa: PLC0415

    data = read_settings().data.absolute()
    known = known_nights(data)
    if suite is None:
        console.line(str(write_report(data, night or known[-1])))
        return
    from infra.loadgen.suite_file import parse_suite_file  # noqa: PLC0415
    from warehouse.suite_report.build import build_report  # noqa: PLC0415
    from warehouse.suite_report.formats import FORMATS  # noqa: PLC0415

    typer.echo(FORMATS[output](build_report(data, parse_suite_file(suite)[0], night)), nl=False)


@commands.command(epilog=examples("nightbench site", "nightbench site --out /srv/www/nightbench"))
def site(
    out: Annotated[Path | None, typer.Option(help="Folder; default: site/ in the data folder.")] = None,
) -> None:
    """Write the static site: what changed, and a page for each night and each series. Print its start page.

    Imported histories have pages as well. The pages need no server and no network. Beside them stand files for
    programs: latest.json, a badge, an Atom feed, Parquet files and llms.txt. With --out the feed has no notices of
    nights and machines, since it may be published.
    """
    from tasks.site_notices import site_notices  # noqa: PLC0415
    from warehouse.site.write import write_site  # noqa: PLC0415

    data = read_settings().data.absolute()
    notices = () if out else site_notices(data, console.warn)
    written = write_site(data, (out or data / "site").absolute(), notices=notices)
    console.line(f"{written.index}: {written.series_count} series, {written.night_count} nights")


@commands.command(
    "import", epilog=examples("nightbench import results/vllm-bench.json", "nightbench import results/*.json")
)
def import_files(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Result files of other tools; --history also reads folders of them."),
    ],
    is_history: Annotated[
        bool,
        typer.Option("--history", help="The files are histories: results of many nights, for `nightbench trends`."),
    ] = False,
    columns: Annotated[
        list[str] | None,
        typer.Option("--map", metavar="FIELD=COLUMN", help="Column of a table's field; several are joined by +."),
    ] = None,
    name_pattern: Annotated[
        str | None,
        typer.Option(
            help="Regular expression; its named groups are taken out of a series' name, such as engine_version."
        ),
    ] = None,
    source: Annotated[str | None, typer.Option(help="Where a history is from, if its file does not say.")] = None,
    table: Annotated[str | None, typer.Option(help="Table or view of a SQLite file that has several.")] = None,
) -> None:
    """Load result files of other tools, judged, into the warehouse tables claims and claim_findings.

    Files are stored by their SHA-256; importing a file again changes nothing. A context.toml beside a file can add what
    it does not state. With --history the values go to history_points, and what is doubtful about them to
    history_remarks. Exits 1 if a file cannot be read.
    """
    from warehouse.importers.history.long_table import HistoryOptions, column_map  # noqa: PLC0415
    from warehouse.imports import import_file  # noqa: PLC0415

    if is_history:
        _import_histories(files, HistoryOptions(column_map(columns or []), name_pattern, source, table))
        return
    if columns or name_pattern or source or table:
        raise UsageError("--map, --name-pattern, --source and --table are for histories: pass --history as well")
    settings, is_bad = read_settings(), False
    for path in files:
        try:
            found = import_file(settings.data, path)
        except ToldBesideError as error:
            console.line(str(error))
            continue
        except UnreadableResultError as error:
            console.error(str(error))
            is_bad = True
            continue
        counted = Counter(each.verdict for each in found.judged)
        verdicts = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counted.items())) or "no claims"
        console.line(f"{path}: {verdicts}{'' if found.is_new else ' (already imported)'}")
    if is_bad:
        raise typer.Exit(1)


def _import_histories(named: list[Path], options: "HistoryOptions") -> None:
    from warehouse.histories import files_of, import_history, judge_imported  # noqa: PLC0415

    data, is_bad, said = read_settings().data.absolute(), False, Counter[str]()
    imported: list[ImportedHistory] = []
    for path, is_named in [(file, file in named) for each in named for file in files_of(each)]:
        try:
            imported.append(import_history(data, path, options))
        except (UnreadableResultError, UsageError) as error:
            if isinstance(error, UsageError) and is_named:
                raise
            # A folder holds other files, too.
            is_left_out = isinstance(error, UsageError | UnknownFormatError) and not is_named
            (console.line if is_left_out else console.error)(f"{'left out: ' if is_left_out else ''}{error}")
            is_bad |= not is_left_out
        else:
            _show_imported(imported[-1], said)
    _show_shared(said)
    if not imported and not is_bad:
        raise UsageError(f"no history in {', '.join(map(str, named))}: nothing was imported")
    judge_imported(data, [each.sha256 for each in imported])
    if is_bad:
        raise typer.Exit(1)


# Doubts that most files of a history share; they are printed once.
_SHARED = frozenset({"no_zone", "no_host", "no_client_version", "no_driver"})


def _show_imported(found: "ImportedHistory", said: Counter[str]) -> None:
    already = "" if found.is_new else " (already imported)"
    console.line(f"{found.name}: {found.point_count} values of {found.series_count} series{already}")
    for code, _, message in found.remarks:
        said[code] += 1
        if code not in _SHARED or said[code] == 1:
            console.line(f"  {message}")


def _show_shared(said: Counter[str]) -> None:
    for code in sorted(code for code, count in said.items() if code in _SHARED and count > 1):
        console.line(f"{code} applies to {said[code]} files: the table history_remarks has them all")
