"""The command that shows the pages and the queries on the history of real engines, or on simulated nights."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from flows.cli.arguments import examples, read_settings
from flows.show import console

commands = typer.Typer()

# Each answer shows one thing that happens in the nights.
SIMULATED = {
    "What changed, since when, and why?": (
        "SELECT first_bad, round(effect_pct, 1) AS percent, series, state, cause FROM changes "
        "WHERE metric = 'output_throughput_tok_per_s' ORDER BY ALL"
    ),
    "How do the engine's versions compare?": (
        "SELECT scenario, engine_version_found, round(median(output_throughput_tok_per_s)) AS tok_per_s "
        "FROM accepted GROUP BY ALL ORDER BY ALL"
    ),
    "Which host is slow?": (
        "SELECT host, round(median(tpot_p50_ms), 2) AS tpot_p50_ms, count(DISTINCT night) AS nights "
        "FROM accepted WHERE scenario = 'chat-16' GROUP BY ALL ORDER BY 2 DESC"
    ),
    "What failed, and why?": "SELECT night, scenario, stage, reason FROM failures",
    "What did the newest nights cost?": (
        "SELECT night, round(usd, 2) AS usd, accepted, round(usd_per_accepted, 3) AS usd_per_accepted "
        "FROM night_costs ORDER BY night DESC LIMIT 7"
    ),
}


OF_RELEASES = {
    "What changed, from which release on?": (
        "SELECT first_bad, round(effect_pct, 1) AS percent, series, metric, state, cause, why FROM changes ORDER BY ALL"
    ),
    "How do the releases compare?": (
        "SELECT scenario, engine, engine_version_found, count(DISTINCT night) AS nights, "
        "round(median(output_throughput_tok_per_s), 1) AS tok_per_s, round(median(ttft_p50_ms), 1) AS ttft_p50_ms "
        "FROM accepted GROUP BY ALL ORDER BY ALL"
    ),
    "How far apart are nights of one release?": (
        "SELECT series, engine_version, count(*) AS nights, round(100 * stddev_samp(ln(value)), 1) AS percent "
        "FROM series_nights WHERE metric = 'output_throughput_tok_per_s' GROUP BY ALL ORDER BY ALL"
    ),
    "Which run is not accepted, and why?": (
        "SELECT measurements.night, scenario, measurements.repeat, status, message "
        "FROM findings JOIN measurements USING (run_id) "
        "WHERE status IN ('WARN', 'FAIL') ORDER BY ALL LIMIT 20"
    ),
    "What did a night take?": (
        "SELECT night, round(sum(duration_s), 1) AS seconds, "
        "round(sum(duration_s) FILTER (stage = 'measure'), 1) AS measuring "
        "FROM stages GROUP BY ALL ORDER BY ALL LIMIT 7"
    ),
}


@commands.command(epilog=examples("nightbench demo --simulated", "nightbench demo --simulated --no-open"))
def demo(
    folder: Annotated[
        Path, typer.Argument(help="Folder to write: a new or empty one, or that of an earlier demo.")
    ] = Path("demo"),
    is_simulated: Annotated[
        bool, typer.Option("--simulated", help="Show the simulated nights also where there is a history.")
    ] = False,
    history: Annotated[
        Path | None,
        typer.Option(help="Data set of `make history`; default: the one in catalog/history, where there is one."),
    ] = None,
    is_opened: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the site, where there are a terminal and a display.")
    ] = True,
) -> None:
    """Write nights with their site, to look at before one has run. Needs no engine and no network.

    They are the nights of a history of real engines, in the order of the releases; or, where there is none, 60
    simulated ones with an upgrade, a regression, a bad host and a failed night. Each page says which.
    """
    from flows.show.browser import open_page  # noqa: PLC0415
    from warehouse.demo.history import HISTORY, write_history_demo  # noqa: PLC0415
    from warehouse.demo.write import write_demo  # noqa: PLC0415

    read_settings()  # a wrong value is a sentence, and nothing is written
    chosen = history or HISTORY
    if is_simulated or (history is None and not chosen.is_dir()):
        start, questions, what = write_demo(folder.absolute()), SIMULATED, "60 simulated nights"
    else:
        start, questions = write_history_demo(folder.absolute(), chosen), OF_RELEASES
        what = "real nights, in the order of the releases"
    console.line(f"{what}: {folder}\ntheir site: {start}\n\nFive questions to try:")
    for question, query in questions.items():
        console.line(f'\n# {question}\nnightbench --data {shlex.quote(str(folder))} sql "{query}"')
    if is_opened:
        open_page(start)
