"""A comma of thousands is read as one, a decimal comma never: it would make a number 10 to 1000 times larger."""

from pathlib import Path

import pytest

from tests.warehouse.importers.reading import FORMATS, claims_of
from warehouse.importers.history.row import number_or_none
from warehouse.importers.parsing.fields import Fields
from warehouse.importers.parsing.printed import Quantity, read_quantity

IN_DOUBT = "its comma may stand for a decimal point or for thousands: write 33.1 or 1,234"
CLEAR = [("1,234", 1234.0), ("100,000.5", 100_000.5), ("-1,234,567", -1_234_567.0), ("1,024e-1", 102.4), ("12.5", 12.5)]


def of_nvidia(path: Path, cell: str) -> tuple[float | None, list[str]]:
    (claim, *_) = claims_of("t.csv", path.read_text().replace("41.5 output tokens/sec", f'"{cell} output tokens/sec"'))
    return claim.said.output_throughput_tok_per_s, [remark.message for remark in claim.remarks]


@pytest.mark.parametrize(("text", "number"), CLEAR)
def test_a_comma_between_groups_of_three_digits_is_one_of_thousands(text: str, number: float) -> None:
    fields = Fields({"speed": f" {text} "}, "a.json")

    assert (fields.number("speed"), fields.remarks) == (number, [])
    assert number_or_none(f" {text} ") == number


@pytest.mark.parametrize("text", ["1234,56", "33,1", "0,234", "1,2345", "0123,456"])
def test_another_comma_is_no_number_and_said_to_be_in_doubt(text: str) -> None:
    fields = Fields({"speed": text}, "a.json")

    assert fields.number("speed") is None
    assert [(each.code, each.message) for each in fields.remarks] == [
        ("unreadable_value", f"a.json: speed = {text!r} is not a number: {IN_DOUBT}; ignored")
    ]
    assert number_or_none(text) is None


def test_a_cell_with_a_number_and_its_tokens_has_no_decimal_comma_either() -> None:
    table = FORMATS / "nvidia" / "table.csv"

    assert of_nvidia(table, "1,234.5") == (1234.5, [])
    number, (remark,) = of_nvidia(table, "1234,56")
    assert number is None
    assert remark == f"t.csv row 1: Throughput = '1234,56 output tokens/sec' is not a number: {IN_DOUBT}; ignored"


@pytest.mark.parametrize(
    ("text", "quantity"),
    [
        ("0,234", None),
        ("0 234", None),
        ("1,234", Quantity(1234.0)),
        ("12 345", Quantity(12_345.0)),
        ("100,000.5", Quantity(100_000.5)),
    ],
)
def test_no_group_of_thousands_begins_with_zero(text: str, quantity: Quantity | None) -> None:
    assert read_quantity(text) == quantity


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (("0,234", "1,234"), [0.234, 1.234]),
        (("0,234", "1,456"), [0.234, 1.456]),
        (("10,234", "1,234"), [10_234.0, 1234.0]),
        (("1.234,5", "2.345"), [1234.5, 2345.0]),
        (("1.234,5", "2.345.678"), [1234.5, 2_345_678.0]),
        (("1.234,5", "0.345"), [1234.5, 0.345]),
        (("33,1", "2.345"), [33.1, 2.345]),
        (("12 345", "100,000.5"), [12_345.0, 100_000.5]),
    ],
)
def test_a_column_says_what_its_commas_and_points_are(cells: tuple[str, str], numbers: list[float]) -> None:
    first, second = cells
    claims = claims_of("x.csv", f"Model;Output tok/s\nLlama-3.1-8B;{first}\nLlama-3.1-70B;{second}\n")

    assert [claim.said.output_throughput_tok_per_s for claim in claims] == numbers
