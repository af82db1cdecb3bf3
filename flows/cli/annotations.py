"""Findings as annotations of a GitHub workflow, which shows them beside the lines of the file."""

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.audit.judge import Judged

_LINE = re.compile(r"\blines? (\d+)")
_KINDS = {"FAIL": "error", "WARN": "warning"}
# What ends a property or a message, as GitHub wants it written.
_ESCAPED = {"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"}


def annotations(rows: Iterable["Judged"]) -> Iterator[str]:
    """One line for each finding that fails or warns: `::error file=results.csv,line=4,title=memory_fit::...`."""
    for judged in rows:
        lineage = judged.claim.lineage
        line = _LINE.search(lineage.place)
        at = f",line={line[1]}" if line else ""
        for finding in judged.findings:
            if finding.status in _KINDS:
                place = f"file={_escaped(lineage.file)}{at},title={finding.code}"
                yield f"::{_KINDS[finding.status]} {place}::{_escaped(finding.message, is_message=True)}"


def _escaped(text: str, *, is_message: bool = False) -> str:
    marks = "%\r\n" if is_message else "%\r\n:,"
    return "".join(_ESCAPED[letter] if letter in marks else letter for letter in text)
