"""The command that shows the pages and the queries on simulated nights."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from flows.cli.arguments import examples
from flows.show import console

commands = typer.Typer()

# Each answer shows one thing that happens in the simulated nights.
QUESTIONS = {
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


@commands.command(epilog=examples("nightbench demo", "nightbench demo --no-open"))
def demo(
    folder: Annotated[
        Path, typer.Argument(help="Folder to write: a new or empty one, or that of an earlier demo.")
    ] = Path("demo"),
    is_opened: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the site, where there are a terminal and a display.")
    ] = True,
) -> None:
    """Write 60 simulated nights with their site, to look at before a night has run. Needs no engine and no network.

    They hold an upgrade, a regression, a bad host and a failed night. Each page says that they are simulated.
    """
    from flows.show.browser import open_page  # noqa: PLC0415
    from warehouse.demo.write import write_demo  # noqa: PLC0415

    start = write_demo(folder.absolute())
    console.line(f"60 simulated nights: {folder}\ntheir site: {start}\n\nFive questions to try:")
    for question, query in QUESTIONS.items():
        console.line(f'\n# {question}\nnightbench --data {shlex.quote(str(folder))} sql "{query}"')
    if is_opened:
        open_page(start)
