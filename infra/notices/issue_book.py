"""The issues of events that last: what each must show, and what the tracker shows; a table of `events.sqlite`.

A row is written when its event begins, and deleted once its issue is closed. An event that begins again has another
issue.
"""

import hashlib
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from infra.clock import Clock, SystemClock
from infra.ledger.database import transaction
from infra.notices.book import FILE
from infra.notices.event import Event
from nights.durable import make_folder

REFUSED = "no issue is written"
MOMENTS = ("night.finished", "night.failed", "test")  # kinds that are over when their message is sent: no issue
_TABLE = """
CREATE TABLE IF NOT EXISTS issues (
    key TEXT PRIMARY KEY, began_at TEXT NOT NULL, title TEXT NOT NULL, body TEXT NOT NULL, link TEXT, ended_at TEXT,
    sent_at TEXT, number INTEGER, shown TEXT, is_left INTEGER NOT NULL DEFAULT 0
)
"""


@dataclass(frozen=True)
class Issue:
    """What the issue of an event must show; `number` is its number in the tracker, once that is known."""

    key: str
    began_at: str
    title: str
    body: str
    link: str | None
    ended_at: str | None
    sent_at: str | None  # when its creation was last sent: the tracker may have it without our knowing its number
    number: int | None

    @property
    def marker(self) -> str:
        """The words by which the issue is found again; no other issue has them."""
        return f"nightbench-event-{_digest(self.key, self.began_at)}"

    @property
    def wanted(self) -> str:
        """The digest of what the issue must show."""
        return _digest(self.title, self.body, self.link, self.ended_at)


class IssueBook:
    """The issues of one data folder. Every method raises LedgerError where the file cannot be read or written."""

    def __init__(self, data: Path, clock: Clock | None = None) -> None:
        self.data = data
        self.clock = clock or SystemClock()

    def report(self, event: Event) -> None:
        """Have an issue show this event, unless it is one of a moment."""
        with self._open() as book:
            _report(book, event, self._now())

    def stand(
        self,
        kinds: Collection[str],
        events: Sequence[Event],
        quiet: Collection[str] = (),
        unsearched: Collection[str] = (),
    ) -> None:
        """Have issues show what stands now, and the end of what no longer stands of these kinds.

        The event of a `quiet` key opens no issue; the one that it has stays as it is. So do those of `unsearched` keys.
        """
        with self._open() as book:
            for key in quiet:
                book.execute("DELETE FROM issues WHERE key = ? AND number IS NULL AND sent_at IS NULL", (key,))
            for event in events:
                _report(book, event, self._now())
            now = {event.key for event in events} | set(quiet) | set(unsearched)
            standing = [row["key"] for row in book.execute("SELECT key FROM issues WHERE ended_at IS NULL")]
            self._end(book, [key for key in standing if key not in now and key.partition("/")[0] in kinds])

    def end(self, keys: Collection[str]) -> None:
        """Have the issues of these events closed."""
        with self._open() as book:
            self._end(book, keys)

    def due(self) -> list[Issue]:
        """The issues that the tracker does not show as they must be, the oldest event first."""
        with self._open() as book:
            rows = book.execute("SELECT * FROM issues WHERE NOT is_left ORDER BY began_at, key").fetchall()
        issues = [(Issue(*[row[name] for name in Issue.__dataclass_fields__]), row["shown"]) for row in rows]
        return [issue for issue, shown in issues if issue.wanted != shown]

    def begin(self, issue: Issue) -> bool:
        """Note that its creation is sent now; False where its event is over meanwhile, or another process sends it."""
        with self._open() as book:
            sent = "UPDATE issues SET sent_at = ? WHERE key = ? AND began_at = ? AND sent_at IS ?"
            return book.execute(sent, (self._now(), issue.key, issue.began_at, issue.sent_at)).rowcount == 1

    def mark(self, issue: Issue, number: int, *, is_left: bool = False) -> None:
        """Note what the tracker shows; one that `is_left` was closed by a person, and gets no further word."""
        with self._open() as book:
            shown = "UPDATE issues SET number = ?, shown = ?, is_left = ? WHERE key = ? AND began_at = ?"
            book.execute(shown, (number, issue.wanted, is_left, issue.key, issue.began_at))

    def drop(self, issue: Issue) -> None:
        """Delete the row of an issue that is closed; where its event has begun again meanwhile, have another one."""
        over = "DELETE FROM issues WHERE key = ? AND began_at = ? AND ended_at IS NOT NULL"
        anew = (
            "UPDATE issues SET began_at = ?, number = NULL, sent_at = NULL, shown = NULL WHERE key = ? AND began_at = ?"
        )
        with self._open() as book:
            book.execute(over, (issue.key, issue.began_at))
            book.execute(anew, (self._now(), issue.key, issue.began_at))

    def _end(self, book: sqlite3.Connection, keys: Collection[str]) -> None:
        for key in keys:
            unneeded = "DELETE FROM issues WHERE key = ? AND (is_left OR (number IS NULL AND sent_at IS NULL))"
            book.execute(unneeded, (key,))
            book.execute("UPDATE issues SET ended_at = ? WHERE key = ? AND ended_at IS NULL", (self._now(), key))

    def _now(self) -> str:
        return self.clock.now().isoformat()

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        path = self.data / FILE
        make_folder(path.parent)
        with transaction(path, REFUSED) as book:
            book.execute(_TABLE)
            yield book


def _report(book: sqlite3.Connection, event: Event, now: str) -> None:
    if event.kind not in MOMENTS:
        book.execute(
            "INSERT INTO issues (key, began_at, title, body, link) VALUES (?, ?, ?, ?, ?) ON CONFLICT (key) "
            "DO UPDATE SET title = excluded.title, body = excluded.body, link = excluded.link, ended_at = NULL",
            (event.key, now, event.title, event.body, event.link),
        )


def _digest(*parts: str | None) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:20]
