"""SQL from Jinja templates: a value becomes a literal, and `| name` a quoted name, so that quoting is the default."""

from collections.abc import Iterable, Sequence
from functools import cache

from jinja2 import Environment, StrictUndefined, Template


class Sql(str):
    """Text that is SQL already: a template takes it as it is."""

    __slots__ = ()


def literal(value: object) -> str:
    """Return a value as SQL; of a list or tuple, a list of literals."""
    if isinstance(value, Sql):
        return value
    if value is None:
        return "NULL"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(literal, value))}]"
    return repr(value) if isinstance(value, (int, float)) else "'" + str(value).replace("'", "''") + "'"


def name(names: str | Iterable[str]) -> Sql:
    """Return a name, or names and the commas between them, in double quotes."""
    listed = [names] if isinstance(names, str) else names
    return Sql(", ".join('"' + one.replace('"', '""') + '"' for one in listed))


def rows(values: Iterable[Sequence[object]]) -> Sql:
    """Return rows for VALUES, each on a line."""
    return Sql(",\n        ".join(f"({', '.join(map(literal, row))})" for row in values))


_ENVIRONMENT = Environment(  # noqa: S701 - it writes no HTML
    finalize=literal, undefined=StrictUndefined, keep_trailing_newline=True, trim_blocks=True, lstrip_blocks=True
)
_ENVIRONMENT.filters |= {"name": name, "rows": rows, "sql": Sql}


def sql(template: str, **values: object) -> Sql:
    """Return the SQL of a template; raises jinja2.UndefinedError for a value that it names and does not get."""
    return Sql(_template(template).render(values))


@cache
def _template(text: str) -> Template:
    return _ENVIRONMENT.from_string(text)
