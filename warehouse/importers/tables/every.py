"""Every table of a file, by what the file is: a workbook, a page, a report, or columns of text."""

import csv
import re
from collections.abc import Callable

from bench.errors import UnreadableResultError
from warehouse.importers.tables.columns import table_of_columns
from warehouse.importers.tables.page import tables_of_page
from warehouse.importers.tables.report import has_bars, tables_of_report
from warehouse.importers.tables.table import Table
from warehouse.importers.tables.workbook import is_workbook, tables_of_workbook

_LINK = re.compile(rb"\[!\[|\[[^\[\]\n]*\]\(")  # of Markdown, around a picture or a text


def tables_of(name: str, data: bytes, text: Callable[[], str]) -> list[Table]:
    """The tables in the order of the file; empty for JSON. Raises UnreadableResultError for a broken file.

    `text` decodes the bytes, and is not called for a workbook.
    """
    if is_workbook(data):
        return tables_of_workbook(name, data)
    if begins_as_json(data):
        return []
    start = data[:1024].lstrip().lower()
    content = text()
    if start.removeprefix(b"\xef\xbb\xbf").startswith((b"<!doctype html", b"<html", b"<?xml", b"<head", b"<table")):
        return tables_of_page(name, content)
    if "<table" in content or has_bars(content.splitlines()):
        return tables_of_report(name, content)
    try:
        found = table_of_columns(name, content)
    except csv.Error as error:
        raise UnreadableResultError(f"{name} is not valid CSV: {error}") from error
    return [] if found is None else [found]


def begins_as_json(data: bytes) -> bool:
    """Whether a text is JSON by its first letters; a report may begin with a link, which has a bracket too."""
    start = data[:1024].lstrip(b"\xef\xbb\xbf \t\r\n")
    return start[:1] == b"{" or (start[:1] == b"[" and not _LINK.match(start))
