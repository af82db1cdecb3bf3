"""Prints answers to queries."""

import csv
import sys
from typing import Literal

from bench.printable import printable
from flows.show.console import print_json, table
from warehouse.lake.query import QueryResult


def show_answer(found: QueryResult, form: Literal["table", "json", "csv"]) -> None:
    """Print the answer to a query."""
    rows = found.dicts()
    if form == "json":
        print_json(rows)
    elif form == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(found.columns)
        writer.writerows([printable(one) if isinstance(one, str) else one for one in row] for row in found.rows)
    else:
        table(rows)
