"""Docstrings, comments, messages and pages use plain words; the words of this list were read twice by strangers."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.test_docs import ROOT
from tests.test_layout import PACKAGES

# Each with what to write instead.
WORDS = {
    r"said": "stated, reported or judged; a file and a server do not talk",
    r"(?:was|were|is|as|not) told|told (?:by|of|apart|to)": "shown by, known from, distinguished",
    r"asked": "requested; `not contacted` of a server",
    r"tells? (?:of|apart|them|it|from)|(?:does|do) not tell": "describes, distinguishes, does not report",
    r"anew": "again",
    r"nobody|somebody": "name who, or use the passive voice: `no price known`",
    r"d(?:ies|ied)": "exits, fails, is killed",
    r"dead(?! man| link)": "killed, exited, lost; a dead man's switch and a dead link are terms",
    r"living (?:night|process)": "running",
    r"(?<!there )(?:is|are|was|were) no(?! longer| more| less| fewer)": "is not a",
    r"(?:is|are) to be": "must be, or a verb in the present tense",
}
PLAIN = re.compile(rf"(?<![\w./-])(?:{'|'.join(WORDS)})(?![\w-]|\.\w)", re.IGNORECASE)
CODE = re.compile(r"```.*?```|``.+?``|`[^`]*`|\{+ ?\w* ?\}+|\]\([^)]*\)", re.DOTALL)
OURS = sorted({*PACKAGES, "meter"})
# These state facts of other projects or of earlier times in their words, and are never edited.
KEPT = {"METHOD.md", "CHANGELOG.md", "docs/reference/published-verdicts.md"}
# A prompt, whose every token is part of the measured answers, and patterns of other programs' logs.
OTHERS = {"bench/quality/passage.py", "bench/engines/vllm_failures.py", "meter/words.py", "meter/passages.py"}


def odd_words(text: str) -> list[str]:
    """Return the words of the list in a text, without its code and links."""
    return PLAIN.findall(CODE.sub(" ", text))


def sentences(source: str) -> Iterator[tuple[int, str]]:
    """Yield the comments, docstrings and messages of a file in which the list may have a word, each with its line."""
    if not PLAIN.search(source):
        return
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value.strip():
            yield node.lineno, node.value


def pages() -> Iterator[Path]:
    """Yield every page that is edited; decisions and histories stay as they were written."""
    for page in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")):
        if str(page.relative_to(ROOT)) not in KEPT and page.parent.name != "adr":
            yield page


@pytest.mark.parametrize("folder", OURS)
def test_docstrings_comments_and_messages_use_plain_words(folder: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {', '.join(words)}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        if str(path.relative_to(ROOT)) not in OTHERS
        for line, text in sentences(path.read_text("utf-8"))
        if (words := odd_words(text))
    ]

    assert found == [], "docstrings, comments and messages with words of WORDS"


def test_pages_use_plain_words() -> None:
    found = [
        f"{page.relative_to(ROOT)}: {', '.join(words)}"
        for page in pages()
        if (words := odd_words(page.read_text("utf-8")))
    ]

    assert found == [], "pages with words of WORDS"


@pytest.mark.parametrize(
    "text", ["What was said of a night.", "It is no lake.", "nobody says what X costs", "a dead night", "files told of"]
)
def test_a_word_of_the_list_is_found(text: str) -> None:
    assert odd_words(text)


@pytest.mark.parametrize(
    "text", ["`said` is a field", "there is no file", "it is no longer billed", "dead man's switch"]
)
def test_code_and_terms_of_the_field_are_no_finding(text: str) -> None:
    assert not odd_words(text)
