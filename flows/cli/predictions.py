"""`nightbench predictions`: what a model or a simulator predicted, beside what a night measured."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.cli.arguments import JsonFlag, examples, read_settings
from flows.show import console

if TYPE_CHECKING:
    from bench.audit.predictions import Residual

commands = typer.Typer()


@commands.command(
    epilog=examples(
        "nightbench predictions 2026-03-01T010000Z predicted.csv",
        "nightbench predictions 2026-03-01T010000Z predicted.csv --gpu MI300X --json",
    )
)
def predictions(  # noqa: PLR0913, PLR0917 - each option is an argument
    night: Annotated[str, typer.Argument(help="A loaded night.")],
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="AIConfigurator's CSV, or any table that an audit reads.")
    ],
    mapped: Annotated[
        list[str] | None,
        typer.Option("--map", metavar="THEIRS=OURS[UNIT]", help="What a header of a table means; may be repeated."),
    ] = None,
    gpu: Annotated[str | None, typer.Option(help="GPU, if the file does not state it.")] = None,
    model: Annotated[str | None, typer.Option(help="Model, if the file does not state it.")] = None,
    precision: Annotated[str | None, typer.Option(help="Precision of the weights: bf16, fp8, int4, ...")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Show how far each prediction is off: measured over predicted, less 1, with its interval over the repeats.

    A prediction is compared with the scenario of its lengths and load, and only where model, GPUs, precision and
    parallel sizes are the same as far as both are stated; otherwise the row says which differ. Nothing is stored.
    """
    from bench.audit.claim import ClaimedConfig  # noqa: PLC0415
    from warehouse.column_names import columns_of_options  # noqa: PLC0415
    from warehouse.context import require_known  # noqa: PLC0415
    from warehouse.predictions import residuals_of_night  # noqa: PLC0415

    context = ClaimedConfig(gpu=gpu, model=model, precision=precision)
    require_known(context, lambda key: f"--{key}")
    data = read_settings().data.absolute()
    found = residuals_of_night(data, night, files, context, columns_of_options(mapped or []))
    if as_json:
        console.print_json([asdict(one) for one in found])
        return
    console.table([_row(one) for one in found], f"predictions beside night {night}")
    compared = sum(one.share is not None for one in found)
    console.line(f"{compared} numbers compared, {len(found) - compared} rows are not")


def _row(one: "Residual") -> dict[str, Any]:
    off = None if one.share is None else f"{one.share:+.1%}"
    if one.low is not None and one.high is not None:
        off = f"{off} [{one.low:+.1%}, {one.high:+.1%}]"
    return {
        "scenario": one.scenario,
        "number": one.number,
        "predicted": None if one.predicted is None else f"{one.predicted:.4g}",
        "measured": None if one.measured is None else f"{one.measured:.4g}",
        "off": off,
        "terms": one.why or "; ".join(one.terms),
        "prediction": one.place,
    }
