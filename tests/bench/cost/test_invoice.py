"""What was used and what is billed, matched by machine and day."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.cost.invoice import (
    NO_INVOICE,
    NOT_BILLED,
    NOT_RECORDED,
    PART_OF_ACCOUNT,
    CostRow,
    InvoiceItem,
    Month,
    Used,
    hours_by_day,
)
from bench.cost.invoice import matched as matched_of

MONTH = Month(2026, 11)
BEGAN = datetime(2026, 11, 3, 22, 0, tzinfo=UTC)
NOW = datetime(2026, 11, 20, tzinfo=UTC)
MACHINE = Used("machine", "500", "nb-abc-a1-x1", 3.0, BEGAN, BEGAN + timedelta(hours=4), "night")


ITEM = InvoiceItem("GPU Droplets", "nb-abc-a1-x1 (gpu-mi300x1-192gb)", 12.0, BEGAN, BEGAN + timedelta(hours=4), "500")


def _item(**changed: Any) -> InvoiceItem:
    return replace(ITEM, **changed)


def _matched(used: list[Used], items: list[InvoiceItem] | None) -> list[CostRow]:
    return matched_of(used, items, MONTH, NOW, "nb")


def test_a_machine_over_midnight_has_a_row_for_each_day_and_its_item_is_divided_alike() -> None:
    rows = _matched([MACHINE], [_item()])

    assert [(row.day, row.usd, row.usd_billed) for row in rows] == [
        (date(2026, 11, 3), 6.0, 6.0),
        (date(2026, 11, 4), 6.0, 6.0),
    ]
    assert {(row.difference_usd, row.remark, row.night) for row in rows} == {(0.0, "", "night")}


def test_an_item_without_an_id_is_matched_by_its_name() -> None:
    rows = _matched([MACHINE], [_item(resource_id=None, usd=14.0)])

    assert [(row.usd_billed, row.difference_usd, row.remark) for row in rows] == [
        (7.0, 1.0, "billed more than expected")
    ] * 2


def test_an_item_of_another_machine_with_the_same_name_is_not_matched() -> None:
    rows = _matched([MACHINE], [_item(resource_id="501")])

    assert [(row.usd, row.usd_billed, row.remark) for row in rows if row.day == BEGAN.date()] == [
        (6.0, None, NOT_BILLED),
        (None, 6.0, NOT_RECORDED),
    ]


def test_without_an_invoice_our_own_side_stands_alone() -> None:
    rows = _matched([MACHINE], None)

    assert [(row.usd, row.usd_billed, row.difference_usd, row.remark) for row in rows] == [
        (6.0, None, None, NO_INVOICE)
    ] * 2


def test_machines_of_others_are_one_row_and_what_is_of_the_account_another() -> None:
    others = [_item(description=f"web-{number} (s-1vcpu-1gb)", resource_id=str(number), usd=5.0) for number in (1, 2)]
    spaces = _item(product="Spaces Subscription", description="Spaces ($5/mo)", resource_id=None, usd=5.0)

    rows = _matched([MACHINE], [_item(), *others, spaces])

    of_account = [(row.day, row.sort, row.name, row.usd, row.usd_billed) for row in rows if row.day is None]
    assert of_account == [(None, "bucket", "account", None, 5.0), (None, "other", "2 items", None, 10.0)]


def test_a_model_in_a_bucket_is_part_of_what_the_account_is_billed() -> None:
    model = Used("bucket", None, "org--small/abc", 0.01, datetime(2026, 11, 19, tzinfo=UTC), None)
    spaces = _item(product="Spaces Subscription", description="Spaces ($5/mo)", resource_id=None, usd=5.0)

    ours, account = _matched([model], [spaces])

    assert (ours.day, ours.usd_billed, ours.remark) == (date(2026, 11, 19), None, PART_OF_ACCOUNT)
    assert ours.usd == pytest.approx(0.24)
    assert (account.name, account.usd_billed) == ("account", 5.0)


def test_a_volume_that_is_still_there_is_billed_until_now() -> None:
    volume = Used("volume", "v", "nb-vol-1-atl1-x1", 0.01, datetime(2026, 10, 1, tzinfo=UTC), None)

    rows = _matched([volume], None)

    assert sum(row.usd or 0 for row in rows) == pytest.approx(19 * 24 * 0.01)  # of November only


@given(st.integers(0, 100 * 86400), st.integers(1, 50 * 86400))
def test_the_hours_of_the_days_are_the_hours_of_the_month(offset_s: int, lasts_s: int) -> None:
    began = datetime(2026, 9, 1, tzinfo=UTC) + timedelta(seconds=offset_s)
    ended = began + timedelta(seconds=lasts_s)

    found = hours_by_day(began, ended, MONTH)

    within = (min(ended, MONTH.ended_at) - max(began, MONTH.began_at)).total_seconds() / 3600
    assert sum(found.values()) == pytest.approx(max(0.0, within), abs=1e-9)
    assert all(0 < hours <= 24 for hours in found.values())
