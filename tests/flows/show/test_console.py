import csv
import io
import json
from pathlib import Path

import pytest

from flows.cli import start
from flows.show import console
from flows.show.results import show_answer
from warehouse.lake.query import QueryResult

ESCAPES = "\x1b[2J\x1b]0;mine\x07\rtext\x1b[31m"
SHOWN = "]0;minetext"


@pytest.mark.parametrize("show", [console.line, console.progress, console.warn, console.error, console.document])
def test_no_line_can_change_the_terminal(show: object, capsys: pytest.CaptureFixture[str]) -> None:
    assert callable(show)

    show(ESCAPES)

    printed = "".join(capsys.readouterr())
    assert SHOWN in printed
    assert not set(printed) & {"\x1b", "\x07", "\r"}


@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_no_answer_to_a_query_can_change_the_terminal(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = QueryResult(("gpu", "count"), ((ESCAPES, 1),))

    show_answer(found, form)  # type: ignore[arg-type] # one of the three

    printed = capsys.readouterr().out
    assert "mine" in printed
    assert not set(printed) & {"\x1b", "\x07", "\r"}
    if form == "csv":
        assert list(csv.reader(io.StringIO(printed))) == [["gpu", "count"], [SHOWN, "1"]]


@pytest.mark.parametrize("text", ["[/x]", "\\[/x]", "[red]no colour", ":fire:", "published:-1"])
def test_what_looks_like_markup_or_an_emoji_is_printed_as_it_is(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    for show in (console.line, console.progress, console.warn, console.error):
        show(text)
    console.table([{f"column {text}": text}], None)
    console.panel([text], "title")

    printed = "".join(capsys.readouterr())
    assert printed.count(text) == 7


def test_json_has_no_number_that_json_does_not_know(capsys: pytest.CaptureFixture[str]) -> None:
    console.print_json([{"none": float("nan"), "most": (float("inf"), 1.5), "left": {"least": -float("inf")}}])

    assert json.loads(capsys.readouterr().out, parse_constant=pytest.fail) == [
        {"none": None, "most": [None, 1.5], "left": {"least": None}}
    ]


def test_a_command_that_is_advised_names_the_data_folder_that_this_one_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NIGHTBENCH_DATA", "restored afterwards")
    advice = "stopped; `nightbench run --resume 2026-03-01` runs the missing ones"

    for data in (tmp_path / "my data", None):
        start(data)
        console.error(advice)

    named, plain = capsys.readouterr().err.splitlines()
    assert f"`nightbench --data '{tmp_path}/my data' run --resume 2026-03-01`" in named
    assert plain == f"error: {advice}"
