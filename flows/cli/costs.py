"""The command that compares what we expect to be billed with the invoice."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bench.errors import CloudError, UsageError
from flows.cli.arguments import JsonFlag, examples, read_settings

if TYPE_CHECKING:
    from bench.cost.invoice import InvoiceItem, Month
    from infra.clouds.cloud import Cloud

commands = typer.Typer()


@commands.command(epilog=examples("nightbench costs", "nightbench costs --month 2026-10"))
def costs(
    month: Annotated[
        str | None, typer.Option(metavar="YYYY-MM", help="Month in UTC; default: the current one.")
    ] = None,
    invoice: Annotated[
        Path | None, typer.Option(help="Invoice as a CSV file of DigitalOcean's console; default: by its API.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Show the cost of machines, volumes, images and cached models by day, and of traffic, beside what the cloud bills.

    Writes reports/costs-YYYY-MM.html. Without a token that may read invoices, or a file, only our own side is known.
    Exits 1 if the invoice has a machine of ours that this ledger does not.
    """
    from bench.cost.invoice import NO_INVOICE, NOT_BILLED, NOT_RECORDED, matched, with_traffic  # noqa: PLC0415
    from bench.cost.kept import traffic_usd  # noqa: PLC0415
    from bench.machine.names import PREFIX  # noqa: PLC0415
    from catalog.read import read_catalog  # noqa: PLC0415
    from flows.show.costs import show_costs  # noqa: PLC0415
    from infra.bootstrap import ledger, volume_book  # noqa: PLC0415
    from infra.clouds.by_name import set_up  # noqa: PLC0415
    from infra.leases.used import models_in_bucket, used_of  # noqa: PLC0415
    from infra.storage.bucket import bucket_location  # noqa: PLC0415
    from warehouse.report.costs_page import write_costs_page  # noqa: PLC0415

    settings, now = read_settings(), datetime.now(UTC)
    of_month = _month(month or f"{now:%Y-%m}")
    rented = {name: one.open_cloud(settings) for name, one in set_up(settings).items()}
    used, notes = used_of(ledger(settings), volume_book(settings), rented)
    if (bucket := bucket_location(settings)) is not None:
        models, unknown = models_in_bucket(bucket)
        used, notes = used + models, notes + unknown
    items, why = _items(invoice, of_month, rented)
    prefix = next((one.prefix for one in rented.values()), PREFIX)
    rows = matched(used, items, of_month, now, prefix)
    if rented:
        free = traffic_usd(rented, read_catalog().pace)
        rows = with_traffic(rows, free, NO_INVOICE if items is None else NOT_BILLED)
    notes += [why] if why else []
    page = None if as_json else write_costs_page(settings.data.absolute(), str(of_month), rows, notes)
    show_costs(rows, notes, str(of_month), page, as_json=as_json)
    if any(row.remark == NOT_RECORDED for row in rows):
        raise typer.Exit(1)


def _month(text: str) -> "Month":
    from bench.cost.invoice import Month  # noqa: PLC0415

    try:
        found = datetime.strptime(text, "%Y-%m").replace(tzinfo=UTC)
    except ValueError as error:
        raise UsageError(f"--month {text!r} must have the form YYYY-MM, such as 2026-10") from error
    return Month(found.year, found.month)


def _items(
    invoice: Path | None, month: "Month", rented: "dict[str, Cloud]"
) -> "tuple[list[InvoiceItem] | None, str | None]":
    """The items of the invoice, from the file or the first cloud that has invoices; or None and the reason."""
    from infra.clouds.abilities import InvoiceCloud  # noqa: PLC0415
    from infra.clouds.by_name import INVOICE_FILES  # noqa: PLC0415

    if invoice is not None:
        (read_file,) = INVOICE_FILES.values()
        return read_file(invoice), None
    for cloud in rented.values():
        if isinstance(cloud, InvoiceCloud):
            try:
                items = cloud.invoice(month)
            except CloudError as error:
                return None, f"no invoice: {error}; pass --invoice FILE for one that the console exports"
            return items, None if items is not None else f"{cloud.name} has no invoice of {month} yet"
    return None, "no invoice: no cloud with invoices is set up; pass --invoice FILE for one that a console exports"
