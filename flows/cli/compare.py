"""The command that compares two sides: versions, nights, images, machines, suites, variants, a published number."""

import shlex
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from flows.cli.arguments import JsonFlag, examples, read_settings
from flows.show import console
from flows.show.markdown import comparison_markdown

if TYPE_CHECKING:
    from warehouse.trends.compare import Comparison

commands = typer.Typer()
_SHOWN = ("verdict", "series", "metric", "a", "b", "change", "threshold", "leases", "differs")
REFUSED_SHOWN = 20
_WHAT = (
    "Night, engine version, image, machine, GPU, suite or variant; or key=value, several joined by commas, where * is "
    "any text; or published:LINE of catalog/published.csv."
)


@commands.command(
    epilog=examples(
        "nightbench compare 2026-03-01T010000Z published:5",
        "nightbench compare suite=synthetic published:5 --format md",
    )
)
def compare(
    one: Annotated[str, typer.Argument(metavar="A", help=_WHAT)],
    other: Annotated[str, typer.Argument(metavar="B", help="The same; changes are those of B against A.")],
    output: Annotated[
        Literal["table", "md", "json"], typer.Option("--format", help="md: a comment for a pull request.")
    ] = "table",
    as_json: JsonFlag = False,
) -> None:
    """Compare B with A: what is lost or gained, by how much, what a side lacks, and what cannot be compared.

    Exits 1 if a loss is confirmed, 0 if none is, and 2 if a side matches nothing. A loss is confirmed where p < 0.005,
    it is at least as large as the threshold, and it stands among all the pairs tested.
    """
    from warehouse.trends.compare import compare as compare_sides  # noqa: PLC0415

    found = compare_sides(read_settings().data.absolute(), one, other)
    if as_json or output == "json":
        console.print_json(found.answer())
    elif output == "md":
        console.document(comparison_markdown(found.answer(), shlex.join(["nightbench", "compare", one, other])))
    else:
        _show(found)
    raise typer.Exit(found.exit_code)


def _show(found: "Comparison") -> None:
    answer = found.answer()
    console.table([_row(pair) for pair in answer["pairs"]], f"A = {found.one}, B = {found.other}")
    means = [
        {**mean, "ratio": f"{mean['ratio']:.4f} [{mean['ci_lo']:.4f}, {mean['ci_hi']:.4f}]"}
        for mean in answer["geometric_means"]
    ]
    shown = [{name: mean[name] for name in ("metric", "pairs", "ratio")} for mean in means]
    console.table(shown, "geometric mean of the ratios, above 1: B is better")
    missing = answer["missing"]
    if missing:
        console.table(missing[:REFUSED_SHOWN], "missing on one side")
    refused = [row for row in answer["refused"] if row["series"] not in {one["series"] for one in missing}]
    console.table(refused[:REFUSED_SHOWN], "not compared")
    if len(refused) > REFUSED_SHOWN:
        console.line(f"{len(refused) - REFUSED_SHOWN} more are not compared; --json prints them")
    console.line(found.summary)


def _row(pair: dict[str, Any]) -> dict[str, Any]:
    from warehouse.trends.compare import few_values  # noqa: PLC0415

    change = f"{pair['effect_pct']:+.1f} %"
    if pair["ci_lo"] is not None:
        change += f" [{pair['ci_lo']:+.1f}, {pair['ci_hi']:+.1f}]"
    differs = "; ".join(
        f"{name}: {few_values(one)} -> {few_values(other)}" for name, (one, other) in pair["differs"].items()
    )
    row = pair | {
        "a": f"{pair['a']:.4g}",
        "b": f"{pair['b']:.4g}",
        "change": change,
        "threshold": f"{pair['min_effect_pct']:g} %",
        "leases": f"{pair['a_leases']} and {pair['b_leases']}",
        "differs": differs,
    }
    return {name: row[name] for name in _SHOWN}
