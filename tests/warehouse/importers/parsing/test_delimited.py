"""What separates the cells of a table."""

import pytest

from warehouse.importers.parsing.delimited import cells_of, delimiter_of


@pytest.mark.parametrize(
    ("header", "mark"),
    [
        ("model,tok/s", ","),
        ("model;tok/s", ";"),
        ("model\ttok/s", "\t"),
        ("model;TTFT (ms, mean);TPOT (ms, mean)", ";"),
        ('model;"TTFT, ms, mean, p50"', ";"),
        ("model,rate (1/s; mean),tok/s", ","),
        ("model", ","),
    ],
)
def test_the_mark_that_stands_most_often_outside_quotes_and_brackets_separates_the_cells(
    header: str, mark: str
) -> None:
    assert delimiter_of(f"\n{header}\n1\n") == mark


def test_a_comma_in_a_name_does_not_split_a_line_of_semicolons() -> None:
    assert list(cells_of("model;TTFT (ms, mean);tok/s\nm;3,5;7\n")) == [
        (1, ["model", "TTFT (ms, mean)", "tok/s"]),
        (2, ["m", "3,5", "7"]),
    ]
