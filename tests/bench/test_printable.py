import sys

import pytest

from bench.errors import NightbenchError, ObjectStoreError
from bench.printable import printable, printable_strings


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text\n\twith lines and é, 日本 and 🙂", "plain text\n\twith lines and é, 日本 and 🙂"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x9b31mred", "red"),
        ("\x1b[2J\x1b[1;1Haccepted", "accepted"),  # clears the screen and writes in its place
        ("\x1b[1A\x1b[2Krejected", "rejected"),  # replaces the line above
        ("100 tok/s\r  1 tok/s", "100 tok/s  1 tok/s"),
        ("rejected\b\b\b\b\b\b\b\baccepted", "rejectedaccepted"),
        ("\x1b]0;title\x07text", "]0;titletext"),  # sets the window's title
        ("\x1b]52;c;cm0gLXJm\x1b\\", "]52;c;cm0gLXJm\\"),  # writes the clipboard
        ("\x1bP+q\x9c\x1bc\x0e\x7f\x85\0", "P+qc"),
        ("usd 1\u202e00.5\u202c", "usd 100.5"),  # shown from right to left
        ("\x1b[31", "[31"),  # cut off: nothing is hidden
        ("lone \ud800", "lone ?"),
        ("", ""),
    ],
)
def test_what_a_machine_writes_cannot_change_a_terminal(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_no_control_character_is_left_but_tab_and_newline() -> None:
    controls = {chr(code) for code in (*range(32), *range(127, 160))}

    assert controls & set(printable("".join(map(chr, range(sys.maxunicode))))) == {"\t", "\n"}


def test_an_error_that_quotes_a_machine_is_printable() -> None:
    assert str(NightbenchError("it said \x1b[2Jnothing")) == "it said nothing"
    assert ObjectStoreError("\x1b[1mno", is_refusal=True).args == ("no",)


def test_every_string_of_a_value_becomes_printable() -> None:
    assert printable_strings({"\x1b[1ma": ["\x07b", {"c": "\rd"}], "n": 1.5, "none": None, "yes": True}) == {
        "a": ["b", {"c": "d"}],
        "n": 1.5,
        "none": None,
        "yes": True,
    }
