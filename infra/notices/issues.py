"""Has the tracker show the issues of the book: opens what is new, rewrites what changed, closes what is over.

What fails stays in the book for the next night or check.
"""

from datetime import datetime, timedelta

from infra.notices.issue_book import Issue, IssueBook
from infra.notices.issue_text import body_of, title_of
from infra.notices.tracker import IssueRefusedError, Tracker, TrackerError
from infra.reporting import Say

MOST = 20  # requests of issues in one round: GitHub takes 80 that create something in a minute
ROUND_S = 60.0  # after which no further issue is begun; one answer may take ANSWER_S
SETTLED = timedelta(minutes=1)  # then what was sent without an answer is searched for: it has arrived, and is listed
MARGIN = timedelta(hours=1)  # between the clocks of the tracker and of this computer
AGAIN = "the next night or `nightbench check` tries again"


def sync_issues(book: IssueBook, tracker: Tracker, say: Say) -> None:
    """Have the tracker show what is due, and say what it did not take. LedgerError as the book."""
    began_s = book.clock.monotonic()
    for issue in book.due()[:MOST]:
        if book.clock.monotonic() - began_s > ROUND_S:
            say(f"{tracker.name} is slow: {AGAIN}")
            return
        try:
            _show(book, tracker, issue)
        except IssueRefusedError as error:
            say(f"the issue of {issue.title!r} was not written: {error}; {AGAIN}")
        except TrackerError as error:
            say(f"the issue of {issue.title!r} was not written: {error}; {AGAIN}")
            return


def _show(book: IssueBook, tracker: Tracker, issue: Issue) -> None:
    number = issue.number
    if number is None and issue.sent_at is not None:
        sent_at = datetime.fromisoformat(issue.sent_at)
        if book.clock.now() - sent_at < SETTLED:
            return
        number = tracker.find(issue.marker, sent_at - MARGIN)  # what was sent before was searched for before
    if number is not None:
        is_open = tracker.write(number, title_of(issue), body_of(issue), close=issue.ended_at is not None)
        if issue.ended_at is None:
            book.mark(issue, number, is_left=not is_open)
            return
    elif issue.ended_at is None:
        if book.begin(issue):
            book.mark(issue, tracker.create(title_of(issue), body_of(issue)))
        return
    book.drop(issue)
