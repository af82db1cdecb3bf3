"""Columns that are named as ratios: one of the table's numbers to another, or to that of the first row."""

import pytest

from tests.warehouse.importers.reading import alarms, claims_of


def _named(header: str, rows: list[str]) -> int:
    """How many rows have a number that does not follow from the others."""
    text = "\n".join(["# Speed", header, "|-|-|-|-|", *(f"| {row} |" for row in rows), ""])
    return sum("table_arithmetic" in alarm for alarm in alarms(claims_of("report.md", text)))


@pytest.mark.parametrize(("wrong", "count"), [("443.30%", 0), ("543.30%", 1), ("536.40%", 1)])
def test_percents_say_one_thing_down_a_column(wrong: str, count: int) -> None:
    inputs, outputs = [100.0, 105.5, 113.1, 120.4, 128.8, 96.6], [543.3, 108.3, 129.9, 160.7, 150.2, 102.6]
    shown = [f"{100 * (one / other - 1):.2f}%" for one, other in zip(outputs, inputs, strict=True)]
    rows = zip("ABCDEF", inputs, outputs, [wrong, *shown[1:]], strict=True)
    header = "| Model | Input tok/s | Output tok/s | Change % |"

    assert _named(header, [" | ".join(map(str, row)) for row in rows]) == count


@pytest.mark.parametrize(("wrong", "count"), [("292.0%", 0), ("392.0%", 1)])
def test_a_percent_of_the_first_row_is_computed_in_a_long_table_too(wrong: str, count: int) -> None:
    speeds = [100.0 + 7.3 * at for at in range(60)]
    shown = [f"{100 * (speed / speeds[0] - 1):.1f}%" for speed in speeds]
    shown[40] = wrong
    rows = [
        f"{1 + at} | 128 | {speed:.1f} | {change}" for at, (speed, change) in enumerate(zip(speeds, shown, strict=True))
    ]

    assert _named("| Batch | Input | Output tok/s | Change % |", rows) == count


def test_a_duration_is_no_ratio_of_the_columns_whose_words_it_has() -> None:
    header = "| Engine | Duration (s) | Req/s | Total Tok/s |"

    assert _named(header, ["vLLM | 155.97 | 0.41 | 186.35", "llama.cpp | 79.95 | 0.45 | 83.60"]) == 0
