"""The tables of a text with prose around them: Markdown's bars, a page's tags, and what a tool printed in columns."""

import re
from collections.abc import Iterator, Sequence

from warehouse.importers.tables.page import tables_of_page
from warehouse.importers.tables.table import CellCount, Row, Table, table_of

_BAR = re.compile(r"(?<!\\)\|")
_RULE = re.compile(r"\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*")  # the line below a Markdown header
_HEADING = re.compile(r"\s{0,3}(#{1,6})\s+(.*?)\s*#*\s*$")
_FENCE = re.compile(r"\s*(?:```[^`]*|~~~.*)$")  # with code behind it, `` ```x``` `` is text
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_MARKS = re.compile(r"\*{1,3}(?=\S)(.+?)(?<=\S)\*{1,3}|`([^`]*)`")
_TAGS = re.compile(r"<[^<>]{0,200}>")
_LONG = 2000  # characters of a line of prose; more is data


def tables_of_report(name: str, text: str) -> list[Table]:
    """Every table of a text, in order; those in tags behind those with bars."""
    found = list(_with_bars(name, text))
    return [*found, *tables_of_page(name, text)] if "<table" in text.lower() else found


def is_fence(line: str) -> bool:
    """Whether a block of code begins or ends at this line of Markdown."""
    return _FENCE.match(line) is not None


def has_bars(lines: Sequence[str]) -> bool:
    """Whether a table with bars begins among these lines."""
    return any(_is_rule(line) and "|" in lines[at - 1] for at, line in enumerate(lines) if at)


def _with_bars(name: str, text: str) -> Iterator[Table]:
    count, lines = CellCount(name), text.splitlines()
    headings: dict[int, str] = {}  # by level: those that the line stands under
    caption, is_code = "", False
    at = 0
    while at < len(lines):
        line = lines[at]
        if "|" in line and at + 1 < len(lines) and _is_rule(lines[at + 1]):
            header, begin = _cells(line), at + 2
            at = begin
            while at < len(lines) and "|" in lines[at]:
                at += 1
            rows = [Row(begin + down + 1, _cells(row)) for down, row in enumerate(lines[begin:at])]
            rows = [row for row in rows if not _is_rule("|".join(row.cells))]
            count.add(sum(len(row.cells) for row in rows))
            table = table_of(header, rows, caption, _title(headings))
            if table is not None:
                yield table
            caption = ""
            continue
        title = _HEADING.match(line) if len(line) < _LONG and not is_code else None  # `#` in code is a remark
        if title:
            level = len(title[1])
            headings = {own: text for own, text in headings.items() if own < level} | {level: _plain(title[2])}
            caption = ""
        elif is_fence(line):
            is_code = not is_code
        elif line.strip() and len(line) < _LONG and not is_code and not line.lstrip().startswith("<"):
            caption = _plain(line)  # a command in a block of code is of something else
        at += 1


def _title(headings: dict[int, str]) -> str:
    """The two innermost headings: `Time to first token: 70B models`."""
    return ": ".join(text for _, text in sorted(headings.items())[-2:])


def _is_rule(line: str) -> bool:
    return "-" in line and len(line) < _LONG and _RULE.fullmatch(line) is not None


def _cells(line: str) -> tuple[str, ...]:
    row = line.strip().removeprefix("|")
    row = row[:-1] if row.endswith("|") and not row.endswith("\\|") else row
    return tuple(_plain(cell.replace("\\|", "|")) for cell in _BAR.split(row))


def _plain(text: str) -> str:
    """Without Markdown's marks around words, links and tags."""
    if "[" in text:
        text = _LINK.sub(r"\1", text)
    if "<" in text:
        text = _TAGS.sub(" ", text)
    if "*" in text or "`" in text:
        text = _MARKS.sub(lambda found: found[1] or found[2] or "", text)
    return " ".join(text.split())
