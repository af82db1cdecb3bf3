"""Columns of a table that hold no measurements: zeros that nobody filled in, and numbers that are expected."""

import pytest

from tests.warehouse.importers.reading import alarms, claims_of

HEAD = "# On H100\n\n| Concurrency | Prefill tok/s | Output tok/s |\n|-|-|-|\n"


def test_a_column_of_zeros_beside_numbers_was_not_measured() -> None:
    claims = claims_of("report.md", HEAD + "| 1 | 0.00 | 33.1 |\n| 8 | 0.00 | 214.5 |\n")

    assert alarms(claims) == []
    assert [claim.said.output_throughput_tok_per_s for claim in claims] == [33.1, 214.5]
    why = "it is 0 in every row, beside other numbers: it was not measured"
    assert [(each.name, each.value, each.why) for claim in claims for each in claim.not_read] == [
        ("Prefill tok/s", "0.00", why)
    ] * 2


@pytest.mark.parametrize(
    "rows",
    [
        "| 1 | 0.00 | 33.1 |\n| 8 | 1004.2 | 214.5 |\n",  # of one run
        "| 1 | 0.00 | 0.0 |\n| 8 | 0.00 | 0.0 |\n",  # of all runs, of which there is no other number
        "| 1 | 0.00 | 33.1 |\n",  # of the only run
    ],
)
def test_any_other_zero_is_a_failure(rows: str) -> None:
    assert any(alarm.startswith("FAIL failed_not_zero") for alarm in alarms(claims_of("report.md", HEAD + rows)))


@pytest.mark.parametrize("header", ["Expected TTFT p50", "Projected tok/s", "Theoretical TPOT (ms)"])
def test_a_column_of_expected_numbers_does_not_reject_what_is_measured_beside_it(header: str) -> None:
    table = f"# On H100\n\n| Concurrency | {header} | Output tok/s |\n|-|-|-|\n| 1 | 40 | 33.1 |\n"

    (claim,) = claims_of("report.md", table)

    assert alarms([claim]) == []
    assert claim.said.output_throughput_tok_per_s == pytest.approx(33.1)
    assert [(each.name, each.value, each.why) for each in claim.not_read] == [
        (header, "40", "it is expected, not measured")
    ]
