"""SQL from templates: what a value or a name has in it stays a value or a name."""

import ast
import re
import sqlite3
from pathlib import Path

import duckdb
import pytest
from jinja2 import UndefinedError

from warehouse.sql import Sql, literal, rows, sql

ROOT = Path(__file__).parents[2]
FOLDERS = ("bench", "benchmarks", "catalog", "flows", "infra", "meter", "nights", "tasks", "warehouse")
STATEMENT = re.compile(
    r"\s*(SELECT|FROM|WITH|CREATE|DESCRIBE|EXPLAIN|ATTACH|INSERT|UPDATE|DELETE|ALTER|COPY|COMMENT|SET|DROP) "
)
BEGINNING = re.compile(f'f"+{STATEMENT.pattern}')
AWKWARD = ["it's", '"quoted"', "a\\b", "{{ x }}", "; DROP TABLE t", "", "日本"]


@pytest.mark.parametrize("text", AWKWARD)
def test_a_value_comes_back_as_it_was(text: str) -> None:
    query = sql("SELECT {{ text }}, {{ texts }}", text=text, texts=[text, text])

    assert duckdb.execute(query).fetchone() == (text, [text, text])


@pytest.mark.parametrize("name", ["it's", '"quoted"', "a b", "order"])
def test_a_name_is_quoted_for_duckdb_and_sqlite(name: str) -> None:
    query = sql("SELECT {{ [name, 'plain'] | name }} FROM (SELECT 1 AS {{ name | name }}, 2 AS plain)", name=name)

    assert [one[0] for one in duckdb.execute(query).description or ()] == [name, "plain"]
    assert [one[0] for one in sqlite3.connect(":memory:").execute(query).description] == [name, "plain"]


def test_only_text_that_is_sql_already_is_taken_as_it_is() -> None:
    assert sql("{{ a }} {{ b }} {{ 'c' | sql }}", a=Sql("now()"), b="now()") == "now() 'now()' c"


def test_a_missing_value_is_null_and_numbers_stay_numbers() -> None:
    assert literal([None, 1, 0.1, True]) == "[NULL, 1, 0.1, True]"


def test_rows_are_those_of_values() -> None:
    assert duckdb.execute(f"VALUES {rows([('a', 1), (None, 2)])}").fetchall() == [("a", 1), (None, 2)]


def test_a_value_that_a_template_names_and_does_not_get_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        sql("SELECT {{ missing }}")


def test_no_statement_is_put_together_by_hand() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*.py"))
        if BEGINNING.search(text := path.read_text("utf-8"))  # to parse every file takes seconds
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.JoinedStr) and is_statement(node) and not all(map(is_quoted, node.values))
    ]

    assert found == [], "pass values as parameters, or write it as a template of warehouse/sql.py"


def is_statement(text: ast.JoinedStr) -> bool:
    first = text.values[0]
    return isinstance(first, ast.Constant) and STATEMENT.match(str(first.value)) is not None


def is_quoted(part: ast.expr) -> bool:
    """Whether a part of an f-string is constant, or what quotes names and values."""
    if isinstance(part, ast.Constant):
        return True
    called = part.value.func if isinstance(part, ast.FormattedValue) and isinstance(part.value, ast.Call) else None
    return isinstance(called, ast.Name) and called.id in {"name", "rows", "literal"}
