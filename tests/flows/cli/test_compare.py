"""The table of `nightbench compare` stays readable where the sides have many values."""

import pytest

from flows.cli.compare import few_values


@pytest.mark.parametrize(
    ("stated", "shown"), [("", "unknown"), ("3.1, 3.2, 4", "3.1, 3.2, 4"), ("a, b, c, d", "4 values")]
)
def test_the_table_counts_the_values_of_a_field_that_has_many(stated: str, shown: str) -> None:
    assert few_values(stated) == shown
