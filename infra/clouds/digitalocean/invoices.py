"""DigitalOcean's invoices: by its API, and as the CSV that its console exports."""

import csv
import io
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.cost.invoice import InvoiceItem, Month
from bench.errors import CloudError, UsageError
from infra.clouds.digitalocean.client import Calls, page_of

SCOPE = "billing:read"
COLUMNS = ("product", "description", "start", "end", "USD")  # of the CSV; it has more


class InvoiceCalls:
    """The part of an account that knows what was billed."""

    name: str
    _client: Any
    _calls: Calls

    def invoice(self, month: Month) -> list[InvoiceItem] | None:
        """The items of a month's invoice, or of its preview while the month lasts; None where there is neither yet."""
        answers: list[Any] = []

        def page_at(number: int) -> Any:
            answers.append(self._client.invoices.list(**page_of(number)))
            return answers[-1]

        known = self._calls.pages(SCOPE, page_at, "invoices")
        known += [one["invoice_preview"] for one in answers if isinstance(one.get("invoice_preview"), dict)]
        of_month = [one["invoice_uuid"] for one in known if one.get("invoice_period") == str(month)]
        if not of_month:
            return None
        rows = self._calls.pages(
            SCOPE, lambda page: self._client.invoices.get_by_uuid(of_month[0], **page_of(page)), "invoice_items"
        )
        try:
            return [_item(row) for row in rows]
        except (KeyError, ValueError) as error:
            raise CloudError(f"{self.name}: an item of the invoice of {month} cannot be read: {error!r}") from error


def _item(row: Mapping[str, Any]) -> InvoiceItem:
    return InvoiceItem(
        product=str(row["product"]),
        description=str(row.get("description") or ""),
        usd=float(row["amount"]),
        began_at=_moment(str(row["start_time"])),
        ended_at=_moment(str(row["end_time"])),
        resource_id=row.get("resource_id") or row.get("resource_uuid") or None,
    )


def _moment(text: str) -> datetime:
    """A time of the API (`2020-01-01T00:00:00Z`) or of the CSV (`2020-07-01 00:00:00 +0000`), in UTC."""
    found = datetime.fromisoformat(text) if "T" in text else datetime.strptime(text, "%Y-%m-%d %H:%M:%S %z")
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def read_invoice_csv(path: Path) -> list[InvoiceItem]:
    """The items of a CSV file; UsageError, with the line, for a file that is none or a cell that cannot be read."""
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the invoice {path} cannot be read: {error}") from error
    reader = csv.DictReader(io.StringIO(text))
    missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
    if missing:
        raise UsageError(f"{path} is not an invoice of DigitalOcean: it has no column {', '.join(missing)}")
    items = []
    for row in reader:
        try:
            usd = float(row["USD"].replace("$", "").replace(",", ""))
            times = _moment(row["start"]), _moment(row["end"])
        except (AttributeError, TypeError, ValueError) as error:
            raise UsageError(f"{path}:{reader.line_num}: an amount or a time cannot be read ({error})") from error
        items.append(InvoiceItem(row["product"], row["description"], usd, *times))
    return items
