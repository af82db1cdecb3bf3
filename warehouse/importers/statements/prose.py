"""The text of a page or report without its tags, its tables and its code, line by line and as sentences."""

import re
from collections.abc import Iterator
from html import unescape

from warehouse.importers.tables.report import is_fence

_TAG = re.compile(r"<[/!a-zA-Z][^<>]{0,2000}>")
_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z*`\d])")
_LINK = re.compile(r"!?\[([^\]\n]{0,300})\]\([^)\n]{0,500}\)")
_MARKS = re.compile(r"[*`]|(?<!\w)_|_(?!\w)")
_SENTENCE_MAX = 400
_PARAGRAPH_MAX = 20  # lines


def without_tags(text: str) -> str:
    """The text without tags and what is not shown, with as many lines."""
    if "<" not in text:
        return text
    for name in ("script", "style", "template", "noscript", "svg"):
        text = _without(text, name)
    return unescape(_TAG.sub(lambda tag: "\n" * tag[0].count("\n"), text)).replace("\u2028", " ")


def _without(text: str, name: str) -> str:
    """The text with every element of this name replaced by its line ends; scanned once."""
    lowered, parts, at = text.lower(), list[str](), 0
    while (start := lowered.find(f"<{name}", at)) >= 0:
        end = lowered.find(f"</{name}", start)
        end = len(text) if end < 0 else end
        parts += [text[at:start], "\n" * text.count("\n", start, end)]
        at = end
    return "".join([*parts, text[at:]])


def sentences(text: str) -> Iterator[tuple[int, str]]:
    """Each sentence of the prose, with the number of the line where its paragraph begins."""
    paragraph: list[str] = []
    begin = 0
    for number, line in [*_prose(text), (0, "")]:
        if line and len(paragraph) < _PARAGRAPH_MAX:
            begin = begin if paragraph else number
            paragraph.append(line)
            continue
        for sentence in _END.split(" ".join(paragraph)):
            if 0 < len(sentence) <= _SENTENCE_MAX:
                yield begin, sentence
        paragraph = [line] if line else []
        begin = number


def _prose(text: str) -> Iterator[tuple[int, str]]:
    """The lines of prose, an empty one where a paragraph ends: at a list's entry, a heading, a table and code."""
    is_code = False
    for number, line in enumerate(without_tags(_without(text, "table")).splitlines(), start=1):
        stripped = line.strip()
        if is_fence(line):
            is_code = not is_code
        if is_code or not stripped or stripped.startswith(("#", "|", "```", "~~~")) or stripped.count("|") > 1:
            yield number, ""
            continue
        if stripped.startswith(("- ", "* ", "+ ", ">")):
            yield number, ""
        yield number, " ".join(_MARKS.sub("", _LINK.sub(r"\1", stripped.lstrip("-*+> "))).split())
