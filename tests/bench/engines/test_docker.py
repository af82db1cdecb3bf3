import pytest

from bench.engines.docker import environment_file
from bench.errors import UsageError


def test_each_variable_is_a_line_of_the_environment_file() -> None:
    assert environment_file({"A": "1", "B": "two words"}) == "A=1\nB=two words\n"


@pytest.mark.parametrize("value", ["a\nb", "a\rb"])
def test_a_line_break_in_the_environment_is_refused(value: str) -> None:
    with pytest.raises(UsageError, match=r"engine\.environment\.X holds a line break, .*: remove it"):
        environment_file({"X": value})
