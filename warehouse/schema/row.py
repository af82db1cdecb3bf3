"""One row of a table of the lake."""

from typing import Any

Row = dict[str, Any]  # a value for each column of its table, by name; None is NULL
