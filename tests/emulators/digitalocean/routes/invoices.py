"""The account's invoices: one a month, made of its bill, and a preview of the month that has not ended."""

from datetime import UTC, datetime, timedelta

from tests.emulators.digitalocean.billing import Interval
from tests.emulators.digitalocean.catalog import Json
from tests.emulators.digitalocean.replies import Reply, not_found, paged
from tests.emulators.digitalocean.resources import iso
from tests.emulators.digitalocean.routing import Call, route

PRODUCTS = {"droplet": "GPU Droplets", "volume": "Volumes", "snapshot": "Snapshots"}


def _months(call: Call) -> list[datetime]:
    """The first moment of each month with something on the bill, oldest first."""
    first = min((one.began for one in call.state.bill.intervals), default=call.now)
    months, at = list[datetime](), datetime.fromtimestamp(first, UTC)
    while at.timestamp() <= call.now:
        at = at.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        months.append(at)
        at = _next(at)
    return months


def _next(month: datetime) -> datetime:
    return (month + timedelta(days=32)).replace(day=1)


def _uuid(month: datetime) -> str:
    return f"22737513-0ea7-4206-8ceb-{month:%Y%m}000000"


def _items(call: Call, month: datetime) -> list[Json]:
    return [
        item
        for one in call.state.bill.intervals
        if (item := _item(one, month, call.now, call.state.billed_extra_share))
    ]


def _item(one: Interval, month: datetime, now: float, extra_share: float) -> Json | None:
    began, ended = max(one.began, month.timestamp()), min(one.ended or now, _next(month).timestamp(), now)
    if ended <= began or not one.usd_per_hour:
        return None
    usd = max(ended - began, one.minimum_s) / 3600 * one.usd_per_hour * (1 + extra_share)
    return {
        "product": PRODUCTS[one.kind],
        "resource_id": one.resource,
        "description": f"{one.name} ({one.size})" if one.size else one.name,
        "amount": f"{usd:.2f}",
        "duration": f"{(ended - began) / 3600:.2f}",
        "duration_unit": "Hours",
        "start_time": iso(began),
        "end_time": iso(ended),
        "project_name": "nightbench",
    }


def _invoice(call: Call, month: datetime) -> Json:
    amount = sum(float(item["amount"]) for item in _items(call, month))
    return {
        "invoice_uuid": _uuid(month),
        "invoice_id": f"{month:%Y%m}",
        "amount": f"{amount:.2f}",
        "invoice_period": f"{month:%Y-%m}",
    }


@route("GET", "/v2/customers/my/invoices", "billing:read")
def invoices(call: Call) -> Reply:
    *past, current = _months(call)
    reply = paged("invoices", [_invoice(call, month) for month in reversed(past)], call.request, call.base)
    reply.body["invoice_preview"] = _invoice(call, current) | {"updated_at": iso(call.now)}
    return reply


@route("GET", "/v2/customers/my/invoices/{invoice_uuid}", "billing:read")
def invoice(call: Call) -> Reply:
    for month in _months(call):
        if call.parts["invoice_uuid"] == _uuid(month):
            return paged("invoice_items", _items(call, month), call.request, call.base)
    raise not_found()
