from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from flows.cli import app
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


def test_both_commands_stop_a_query_at_the_limit_that_they_are_given(tmp_path: Path) -> None:
    endless, given = "SELECT count(*) FROM range(100000000000) AS numbers(n) WHERE n % 7 = 3;", ["--limit", "0.1"]

    one = CliRunner().invoke(app, ["--data", str(tmp_path), "sql", endless, *given])
    shell = CliRunner().invoke(app, ["--data", str(tmp_path), "shell", *given], input=f"{endless}\nSELECT 41 + 1;\n")

    assert "stopped after its limit of 0.1 s" in str(one.exception)
    assert shell.exit_code == 2
    assert "stopped after its limit of 0.1 s" in shell.stderr
    assert "42" in shell.stdout


def test_a_statement_of_other_bytes_than_utf_8_fails_and_the_next_one_is_answered(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["--data", str(tmp_path), "shell"], input=b"SELECT '\xff';\nSELECT 42 AS answer;\n")

    assert done.exit_code == 2
    assert "a byte that is not UTF-8" in done.stderr
    assert "42" in done.stdout
