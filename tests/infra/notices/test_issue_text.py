"""Whatever a stranger writes into a name, an issue shows it as text: no link, no picture, no mention, no command."""

import re

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from bench.printable import printable
from infra.notices.issue_book import Issue
from infra.notices.issue_text import BODY_MAX, TITLE_MAX, body_of, title_of

HOSTILE = st.lists(
    st.sampled_from(
        [
            *("```", "````", "`", "~~~", "\n", "\n\n", "    ", "<img src=x onerror=alert(1)>", "<!--", "-->"),
            *("![x](https://evil.example/x.png)", "[a](javascript:alert(1))", "</details>", "@everyone", "@a/b", "#1"),
            *("/close", "/assign @root", "!7", "~bug", "%1", "$2", "&3", "\r", "\x1b[31m", "\u202e", "\ud800", "| a |"),
        ]
    )
    | st.text(max_size=5),
    max_size=12,
).map("".join)


def issue(title: str, body: str = "", link: str | None = None) -> Issue:
    return Issue("data.stale/x", "2026-03-01T01:00:00+00:00", title, body, link, None, None, None)


@given(HOSTILE, HOSTILE)
def test_the_text_is_one_block_of_code_between_sentences_of_ours(title: str, body: str) -> None:
    shown = body_of(issue(title, body))

    tokens = MarkdownIt("commonmark").parse(shown)
    (fence,) = [token for token in tokens if token.type == "fence"]
    others = {token.content for token in tokens if token.type in {"inline", "html_block"}}
    ours = MarkdownIt("commonmark").parse(body_of(issue("x")))
    assert fence.content == printable(f"{title}\n{body}").strip()[:BODY_MAX] + "\n"
    assert others == {token.content for token in ours if token.type in {"inline", "html_block"}}


@given(HOSTILE)
def test_the_title_is_one_line_that_refers_to_nothing(title: str) -> None:
    shown = title_of(issue(title))

    assert 0 < len(shown) <= TITLE_MAX
    assert shown.splitlines() == [shown]
    assert not re.search(r"[@#!$%~&]\w", shown)
    assert printable(shown).encode()


def test_only_a_served_page_is_linked() -> None:
    assert "Page: <https://pages.example/n.html>" in body_of(issue("x", link="https://pages.example/n.html"))
    assert "/srv" not in body_of(issue("x", link="file:///srv/nights/n.html"))


def test_a_long_text_is_cut_before_the_marker() -> None:
    long = issue("x", "y" * 10 * BODY_MAX)

    assert len(body_of(long)) < 65_536
    assert body_of(long).endswith(f"<!-- {long.marker} -->\n")
