"""A CSV becomes values; whatever is wrong in it is named by file, line and column."""

from dataclasses import dataclass
from datetime import date
from typing import ClassVar, Literal

import pytest

from bench.catalog.csv_rows import Above, Count, CsvRow, Day, Flag, Share
from bench.errors import CatalogError


@dataclass(frozen=True, kw_only=True)
class Fruit(CsvRow):
    KEY: ClassVar = ("name", "ripe_on")

    name: str
    ripe_on: Day | None
    mass_g: Above
    seeds: Count | None
    water: Share | None
    is_sweet: Flag
    grade: Literal["A", "B"] | None = None


HEADER = "name,ripe_on,mass_g,seeds,water,is_sweet,grade,source"


def rows(*lines: str) -> tuple[Fruit, ...]:
    return Fruit.table("\n".join([HEADER, *lines]) + "\n", "fruit.csv")


def test_a_row_has_the_types_of_its_fields_and_an_empty_cell_is_none() -> None:
    apple, plum = rows("apple,2026-09-01,182,5e0,0.86,True,,a book", "plum,,66,,,False,,a book")

    assert apple == Fruit(
        name="apple", ripe_on=date(2026, 9, 1), mass_g=182.0, seeds=5, water=0.86, is_sweet=True, source="a book"
    )
    assert (plum.ripe_on, plum.seeds, plum.water, plum.is_sweet) == (None, None, None, False)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("apple,,heavy,5,,True,,x", "fruit.csv:2: column 'mass_g' is 'heavy': give a number above 0"),
        ("apple,,0,5,,True,,x", "fruit.csv:2: column 'mass_g' is '0': give a number above 0"),
        ("apple,,nan,5,,True,,x", "fruit.csv:2: column 'mass_g' is 'nan': give a number above 0"),
        ("apple,,inf,5,,True,,x", "fruit.csv:2: column 'mass_g' is 'inf': give a number above 0"),
        ("apple,,1,5.5,,True,,x", "fruit.csv:2: column 'seeds' is '5.5': give a whole number at least 0"),
        ("apple,,1,-1,,True,,x", "fruit.csv:2: column 'seeds' is '-1': give a whole number at least 0"),
        ("apple,,1,5,86,True,,x", "fruit.csv:2: column 'water' is '86': give a number above 0 and at most 1"),
        ("apple,,1,5,,yes,,x", "fruit.csv:2: column 'is_sweet' is 'yes': give True or False"),
        ("apple,1.9.26,1,5,,True,,x", "fruit.csv:2: column 'ripe_on' is '1.9.26': give a date as 2026-11-22"),
        ("apple,20260901,1,5,,1,,x", "fruit.csv:2: column 'is_sweet' is '1': give True or False"),
        ("apple,1788220800,1,5,,True,,x", "fruit.csv:2: column 'ripe_on' is '1788220800': give a date as 2026-11-22"),
        ("apple,,1,5,,True,C,x", "fruit.csv:2: column 'grade' is 'C': give one of A, B"),
        ("apple,,1,5,,True,,", "fruit.csv:2: column 'source' is empty: give a text"),
        ("apple,,1,5,True,,x", "fruit.csv:2: 7 cells under 8 columns"),
        ('"apple,,1,5,,True,x', "fruit.csv:2: not CSV: unexpected end of data"),
    ],
)
def test_a_wrong_cell_is_named_by_its_place(line: str, said: str) -> None:
    with pytest.raises(CatalogError) as error:
        rows(line)

    assert str(error.value) == said


def test_two_rows_of_one_key_are_refused() -> None:
    with pytest.raises(CatalogError, match=r"fruit.csv:3: column 'name': apple, None is there already"):
        rows("apple,,1,5,,True,,x", "apple,,2,5,,True,,x")


@pytest.mark.parametrize(
    ("header", "said"),
    [
        (f"{HEADER},colour", "fruit.csv:1: column 'colour' is unknown or there twice"),
        (f"{HEADER},name", "fruit.csv:1: column 'name' is unknown or there twice"),
        (HEADER.replace(",water", ""), "fruit.csv:1: the column 'water' is missing"),
        ("", "fruit.csv:1: the column 'source' is missing"),
    ],
)
def test_a_header_has_every_column_once_and_no_other(header: str, said: str) -> None:
    with pytest.raises(CatalogError, match=said):
        Fruit.table(f"{header}\n", "fruit.csv")
