"""A comparison as GitHub's Markdown, for a comment on a pull request.

Every text from a suite, an engine or a machine stands in a code span: no name in it becomes HTML, a link or a mention.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.printable import printable

ROWS = 40  # of a table: a comment holds 65,536 characters
TEXT = 200  # characters of a cell
_CHANGED = ("loss", "gain", "changed")
_BACKTICKS = re.compile("`+")
Row = Mapping[str, Any]


def comparison_markdown(answer: Row, command: str) -> str:
    """The answer of `nightbench compare --json` as Markdown; `command` repeats it."""
    return "\n".join(_lines(answer, command)) + "\n"


def _lines(answer: Row, command: str) -> Iterator[str]:
    changed = [pair for pair in answer["pairs"] if pair["verdict"] in _CHANGED]
    others = [pair for pair in answer["pairs"] if pair["verdict"] not in _CHANGED]
    yield f"### Nightbench: {_verdict(answer)}"
    summary = answer["summary"]
    yield f"\nA is {code(answer['a'])}, B is {code(answer['b'])}. {summary[:1].upper()}{summary[1:]}.\n"
    if changed:
        yield from table(list(map(_pair, changed)))
    yield from _folded("pairs without a confirmed change", list(map(_pair, others)))
    yield from _folded("series missing on one side", [_texts(row) for row in answer.get("missing", ())])
    yield from _folded("series not compared", [_texts(row) for row in _refused(answer)])
    yield f"\n{code(command)}"


def _verdict(answer: Row) -> str:
    if answer["has_confirmed_loss"]:
        return "a loss is confirmed"
    return "no loss is confirmed" if answer["pairs"] else "nothing was compared"


def _refused(answer: Row) -> list[Row]:
    """Those that both sides have."""
    lacking = {row["series"] for row in answer.get("missing", ())}
    return [row for row in answer["refused"] if row["series"] not in lacking]


def _pair(pair: Row) -> Row:
    change = f"{pair['effect_pct']:+.1f} %"
    if pair["ci_lo"] is not None:
        change += f" [{pair['ci_lo']:+.1f}, {pair['ci_hi']:+.1f}]"
    verdict = f"**{pair['verdict']}**" if pair["verdict"] in _CHANGED else str(pair["verdict"])
    return {
        "verdict": verdict,
        "series": code(pair["series"]),
        "metric": code(pair["metric"]),
        "A": f"{pair['a']:.4g}",
        "B": f"{pair['b']:.4g}",
        "change": change,
        "counts from": f"{pair['min_effect_pct']:g} %",
    }


def _texts(row: Row) -> Row:
    return {name: str(value) if isinstance(value, (int, float)) else code(str(value)) for name, value in row.items()}


def _folded(title: str, rows: Sequence[Row]) -> Iterator[str]:
    if rows:
        yield f"\n<details><summary>{len(rows)} {title}</summary>\n"
        yield from table(rows)
        yield "\n</details>"


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Rows whose cells are Markdown already, at most `ROWS` of them."""
    yield f"| {' | '.join(rows[0])} |"
    yield f"|{'---|' * len(rows[0])}"
    for row in rows[:ROWS]:
        yield f"| {' | '.join(map(str, row.values()))} |"
    if len(rows) > ROWS:
        yield f"\n{len(rows) - ROWS} more are in the JSON."


def code(text: str) -> str:
    """A text as a code span of one line that is safe in a table; nothing in it is read as Markdown or HTML."""
    flat = " ".join(printable(text).split()) or "-"
    flat = flat if len(flat) <= TEXT else f"{flat[: TEXT - 1]}…"
    fence = "`" * (max(map(len, _BACKTICKS.findall(flat)), default=0) + 1)
    room = " " if flat.startswith("`") or flat.endswith("`") else ""
    return f"{fence}{room}{flat}{room}{fence}".replace("|", "\\|")
