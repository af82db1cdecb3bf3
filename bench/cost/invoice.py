"""What a ledger states was used, matched by machine and UTC day with what a cloud's invoice bills."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal

Sort = Literal["machine", "volume", "image", "bucket", "traffic", "other"]
CENT = 0.005  # a difference below half a cent is none: invoices are rounded to cents
WHOLE_ACCOUNT = "of the whole account: an invoice does not divide it"
PART_OF_ACCOUNT = "part of what is billed for the whole account"
NOT_BILLED = "not on the invoice"
NOT_RECORDED = "not in this ledger: another computer rented it, or the ledger was lost"
NO_INVOICE = "no invoice"


@dataclass(frozen=True)
class Used:
    """Something of ours that is billed by time: from when, until when (None: still), and at which price."""

    sort: Sort
    resource_id: str | None
    name: str
    usd_per_hour: float
    began_at: datetime
    ended_at: datetime | None
    night: str | None = None


@dataclass(frozen=True)
class InvoiceItem:
    """One line of an invoice; `resource_id` is None where the invoice does not state it. Times are UTC."""

    product: str
    description: str
    usd: float
    began_at: datetime
    ended_at: datetime
    resource_id: str | None = None

    @property
    def name(self) -> str:
        """The name of what was billed: the first word of the description, `name (size)`."""
        return self.description.split(" ", 1)[0] if self.description else ""

    @property
    def sort(self) -> Sort:
        """What it is, by the words of its product."""
        text = self.product.lower()
        return next((sort for words, sort in _PRODUCTS if re.search(words, text)), "other")


_PRODUCTS: tuple[tuple[str, Sort], ...] = (
    ("snapshot|image|backup", "image"),
    ("volume|block storage", "volume"),
    ("spaces|object storage", "bucket"),
    ("bandwidth|transfer|traffic", "traffic"),
    ("droplet|gpu", "machine"),
)


@dataclass(frozen=True)
class CostRow:
    """One day of one machine or item: what we expect, what is billed, and what differs; None where it is unknown."""

    day: date | None  # None: the whole month
    sort: Sort
    name: str
    night: str | None
    usd: float | None
    usd_billed: float | None
    remark: str = ""

    @property
    def difference_usd(self) -> float | None:
        """What is billed beyond what we expect."""
        return None if self.usd is None or self.usd_billed is None else self.usd_billed - self.usd

    def row(self) -> dict[str, Any]:
        """All of it by name, the difference too."""
        return asdict(self) | {"difference_usd": self.difference_usd}


def expected_sum(rows: Sequence[CostRow]) -> str:
    """What we expect in all: `16.50 USD, of it 12.30 for leases and 4.20 for what is kept`."""
    known = [(row.sort, row.usd) for row in rows if row.usd is not None]
    leases, kept = (sum(usd for sort, usd in known if (sort == "machine") == is_lease) for is_lease in (True, False))
    return f"{leases + kept:.2f} USD, of it {leases:.2f} for leases and {kept:.2f} for what is kept"


def with_traffic(rows: Sequence[CostRow], usd: float | None, remark: str) -> list[CostRow]:
    """These rows with what we expect to be billed for traffic; a row with this remark where the invoice has none."""
    found = [replace(row, usd=usd) if row.sort == "traffic" else row for row in rows]
    if all(row.sort != "traffic" for row in rows):
        found.append(CostRow(None, "traffic", "account", None, usd, None, remark))
    return found


@dataclass(frozen=True)
class Month:
    """A calendar month in UTC."""

    year: int
    number: int

    def __str__(self) -> str:
        """`2026-11`, as invoices name their period."""
        return f"{self.year:04}-{self.number:02}"

    @property
    def began_at(self) -> datetime:
        """Its first moment."""
        return datetime(self.year, self.number, 1, tzinfo=UTC)

    @property
    def ended_at(self) -> datetime:
        """The first moment of the next one."""
        return (self.began_at + timedelta(days=32)).replace(day=1)


def matched(
    used: Sequence[Used], items: Sequence[InvoiceItem] | None, month: Month, now: datetime, prefix: str
) -> list[CostRow]:
    """Every day of everything of ours in a month, then what the invoice has besides; `items` None: no invoice is known.

    An item belongs to what has its id, else its name; one without an owner whose name begins as ours do is ours and not
    recorded. Its dollars are spread evenly over its time, and so are ours.
    Items of others are one row with their sum, and what only an account has is a row of its own.
    """
    begins = f"{prefix}-".lower()
    rows: list[CostRow] = []
    left = list(items or ())
    for one in used:
        mine = [item for item in left if _is_of(item, one)]
        left = [item for item in left if item not in mine]
        rows += _days(one, None if items is None else mine, month, now)
    rows += [row for item in left if item.name.lower().startswith(begins) for row in _unrecorded(item, month)]
    rows += _rest([item for item in left if not item.name.lower().startswith(begins)])
    return sorted(rows, key=lambda row: (row.day is None, row.day or date.min, row.sort, row.name))


def _is_of(item: InvoiceItem, used: Used) -> bool:
    if item.sort != used.sort:
        return False
    return item.resource_id == used.resource_id if item.resource_id and used.resource_id else item.name == used.name


def _days(one: Used, items: Sequence[InvoiceItem] | None, month: Month, now: datetime) -> Iterator[CostRow]:
    end = one.ended_at or now
    expected = {day: hours * one.usd_per_hour for day, hours in hours_by_day(one.began_at, end, month).items()}
    billed: dict[date, float] = {}
    for item in items or ():
        for day, usd in _spread(item, month).items():
            billed[day] = billed.get(day, 0.0) + usd
    for day in sorted({*expected, *billed}):
        usd_billed = None if items is None else billed.get(day, 0.0) if items else None
        remark = NO_INVOICE if items is None else _remark(expected.get(day), usd_billed)
        if items is not None and not items:
            remark = PART_OF_ACCOUNT if one.sort == "bucket" else NOT_BILLED
        yield CostRow(day, one.sort, one.name, one.night, expected.get(day, 0.0), usd_billed, remark)


def _remark(expected: float | None, billed: float | None) -> str:
    if expected is None or billed is None or abs(billed - expected) < CENT:
        return ""
    return "billed more than expected" if billed > expected else "billed less than expected"


def hours_by_day(began_at: datetime, ended_at: datetime, month: Month) -> dict[date, float]:
    """The hours of each UTC day of a month between two moments; days without any are left out."""
    found: dict[date, float] = {}
    at, end = max(began_at.astimezone(UTC), month.began_at), min(ended_at.astimezone(UTC), month.ended_at)
    while at < end:
        midnight = datetime(at.year, at.month, at.day, tzinfo=UTC) + timedelta(days=1)
        found[at.date()] = (min(midnight, end) - at).total_seconds() / 3600
        at = midnight
    return found


def _spread(item: InvoiceItem, month: Month) -> dict[date, float]:
    """The dollars of an item by day; all on its first day where it has no duration."""
    hours = hours_by_day(item.began_at, item.ended_at, month)
    total = sum(hours.values())
    return {day: item.usd * one / total for day, one in hours.items()} if total else {item.began_at.date(): item.usd}


def _unrecorded(item: InvoiceItem, month: Month) -> Iterator[CostRow]:
    """The days of an item whose name is ours, and that the ledger does not know."""
    for day, usd in _spread(item, month).items():
        yield CostRow(day, item.sort, item.name, None, None, usd, NOT_RECORDED)


def _rest(items: Sequence[InvoiceItem]) -> Iterator[CostRow]:
    """What is of the account and not of a machine of ours."""
    for sort in ("bucket", "traffic"):
        usd = [item.usd for item in items if item.sort == sort]
        if usd:
            yield CostRow(None, sort, "account", None, None, sum(usd), WHOLE_ACCOUNT)
    others = [item.usd for item in items if item.sort not in {"bucket", "traffic"}]
    if others:
        yield CostRow(None, "other", f"{len(others)} items", None, None, sum(others), "not ours")
