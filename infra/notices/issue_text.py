"""The title and the body of an issue as Markdown: an event's text may quote the names that a stranger chose."""

import re

from bench.printable import printable
from infra.notices.issue_book import Issue

TITLE_MAX = 200  # characters; GitLab takes 255, GitHub 256
BODY_MAX = 60_000  # GitHub takes 65,536
# What both sites turn into a link, and what notifies whoever is named: @user, #1, !1, $1, %1, ~label, &1.
_REFERENCE = re.compile(r"(?<=[@#!$%~&])(?=\w)")
_NO_WIDTH = "\u200b"
_BODY = """{since}

{fence}
{text}
{fence}
{page}
Nightbench rewrites this text while it lasts and closes the issue when it is over. Close it earlier, and Nightbench \
leaves it closed and stays quiet until then.

<!-- {marker} -->
"""


def title_of(issue: Issue) -> str:
    """One line, in which nothing is a reference."""
    line = " ".join(printable(issue.title).split())
    return _REFERENCE.sub(_NO_WIDTH, line)[:TITLE_MAX] or "untitled"


def body_of(issue: Issue) -> str:
    """The event's text in a block of code, where neither site follows a link, names a user or runs a command."""
    text = printable(f"{issue.title}\n{issue.body}").strip()[:BODY_MAX]
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    is_page = (issue.link or "").startswith(("https://", "http://"))  # a file's path says nothing to others
    return _BODY.format(
        since=f"Began {issue.began_at}." if issue.ended_at is None else f"Over since {issue.ended_at}.",
        fence="`" * max(3, longest + 1),
        text=text,
        page=f"\nPage: <{issue.link}>\n" if is_page else "",
        marker=issue.marker,
    )
