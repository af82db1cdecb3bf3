"""Ask at a terminal what headers of a table mean that are like a name of ours, and keep the answers beside it."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from bench.errors import UsageError
from flows.show import console

if TYPE_CHECKING:
    from warehouse.audit import Audit

ASKED_MAX = 8  # headers of one audit; --map and a context file say what more of them mean
_VALUES_SHOWN = 3


def ask_for_headers(found: "Audit") -> bool:
    """Ask for each unread header with a near name of ours what it means; return whether one was answered.

    An answer is kept in the context file of the table. Without a terminal there is no question.
    """
    from warehouse.column_names import keep_columns  # noqa: PLC0415

    answered = False
    for file, header, values, near in _uncertain(found) if sys.stdin.isatty() else ():
        shown = ", ".join(map(repr, values[:_VALUES_SHOWN]))
        offered = f"y: {near}; " if near else ""
        console.progress(
            f"{file}: column {header!r} = {shown} is not read. What is it? {offered}Enter: leave it; q: ask no more; "
            "or a name of ours with its unit, such as output_throughput[tok/s]"
        )
        ours = _answer(header, near)
        if ours is None:
            break
        if ours:
            console.progress(f"kept in {keep_columns(Path(file), {header: ours})}")
            answered = True
    return answered


def _uncertain(found: "Audit") -> Iterator[tuple[str, str, list[str], str]]:
    """File, header and values of each column that is not read and like a name of ours, and that name with a unit."""
    from warehouse.column_names import offered_name  # noqa: PLC0415

    columns: dict[tuple[str, str], list[str]] = {}
    near: dict[tuple[str, str], str] = {}
    for judged in found.judged:
        file = judged.claim.lineage.file
        for each in judged.claim.not_read:
            if each.what == "column" and each.nearest and any(map(str.isdigit, each.value)) and Path(file).is_file():
                columns.setdefault((file, each.name), []).append(each.value)
                near[file, each.name] = offered_name(each.name, each.nearest)
    for key, values in list(columns.items())[:ASKED_MAX]:
        yield *key, list(dict.fromkeys(values)), near[key]


def _answer(header: str, near: str) -> str | None:
    """Our name for a header; empty if it is left unread, None to end the questions."""
    from warehouse.column_names import columns_of_options  # noqa: PLC0415

    while True:
        text = typer.prompt("", default="", show_default=False, prompt_suffix="> ", err=True).strip()
        if text == "q":
            return None
        ours = near if text == "y" else text
        if not ours:
            return ""
        try:
            return columns_of_options([f"{header}={ours}"])[header.strip()]
        except UsageError as error:
            console.warn(str(error))
