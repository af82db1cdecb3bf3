from collections.abc import Iterator
from pathlib import Path

import pytest

from flows.show.shell import run_shell, statements
from warehouse.lake.database import DATABASE, build_warehouse


def test_a_statement_may_have_several_lines_and_the_last_one_no_semicolon() -> None:
    assert list(statements(["SELECT 1\n", "AS x;\n", "\n", "SELECT 2"])) == ["SELECT 1\nAS x;", "SELECT 2"]


def test_quit_ends_the_shell() -> None:
    assert list(statements(["SELECT 1;\n", ".quit\n", "SELECT 2;\n"])) == ["SELECT 1;"]


def test_an_error_is_printed_and_the_next_statement_is_answered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    is_good = run_shell(tmp_path, ["SELEKT 1;", "DELETE FROM measurements;", "SELECT 42 AS answer;"])

    shown = capsys.readouterr()
    assert not is_good
    assert "syntax error" in shown.err
    assert "DELETE is not allowed" in shown.err
    assert "42" in shown.out


def test_an_idle_shell_does_not_hold_the_warehouse(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def rebuilt_meanwhile() -> Iterator[str]:
        yield "SELECT 1 AS before;"
        (tmp_path / DATABASE).unlink()
        build_warehouse(tmp_path)
        yield "SELECT 2 AS after;"

    assert run_shell(tmp_path, rebuilt_meanwhile())
    assert "after" in capsys.readouterr().out
