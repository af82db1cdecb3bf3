"""The book of events and of messages that are still to be sent: `events.sqlite` in the data folder.

An event is sent once when it begins, again when its title or reason changes, and once when it ends. A message stays in
the book until its address has taken it, so one that cannot be sent tonight is sent by the next night or check.
"""

import hashlib
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from bench.errors import LedgerError
from infra.clock import Clock, SystemClock
from infra.ledger.database import transaction
from infra.notices.event import Event, Message
from infra.processes.file_lock import exclusive_lock
from infra.reporting import Say
from nights.durable import make_folder

FILE = "events.sqlite"
REFUSED = "no message is sent"
REFUSED_TRIES = 3
KEEP = timedelta(days=7)  # a message that no address took for so long is dropped
_TABLES = """
CREATE TABLE IF NOT EXISTS events (
    key TEXT PRIMARY KEY, kind TEXT NOT NULL, urgency TEXT NOT NULL, title TEXT NOT NULL, began_at TEXT NOT NULL,
    ended_at TEXT
);
CREATE TABLE IF NOT EXISTS messages (
    number INTEGER PRIMARY KEY, address TEXT NOT NULL, title TEXT NOT NULL, body TEXT NOT NULL, urgency TEXT NOT NULL,
    written_at TEXT NOT NULL, tries INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS details (key TEXT PRIMARY KEY, cloud TEXT, reason TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS given (key TEXT NOT NULL, address TEXT NOT NULL, PRIMARY KEY (key, address));
CREATE TABLE IF NOT EXISTS taken (number INTEGER NOT NULL, recipient TEXT NOT NULL, PRIMARY KEY (number, recipient));
"""


@dataclass(frozen=True)
class Changed:
    """What a report changed: events that began or have another title, and the keys and titles of those that ended."""

    began: tuple[Event, ...] = ()
    over: tuple[tuple[str, str], ...] = ()


def digest(url: str) -> str:
    """The name of an address in the book, without its password."""
    return hashlib.sha256(url.encode()).hexdigest()[:16]


class EventBook:
    """The book of one data folder. Every method raises LedgerError where the file cannot be read or written."""

    def __init__(self, data: Path, urls: Sequence[str], clock: Clock | None = None) -> None:
        self._path = data / FILE
        self._addresses = [digest(url) for url in urls]
        self._clock = clock or SystemClock()

    def report(self, event: Event) -> bool:
        """Have something that happened sent, unless it was under this title and reason; returns whether it is new."""
        with self._open() as book:
            return self._report(book, event)

    def report_standing(
        self, kinds: Collection[str], events: Sequence[Event], unsearched: Collection[str] = ()
    ) -> Changed:
        """Have what stands now sent, as far as it was not, and the end of what no longer stands of these kinds.

        The events of `unsearched` keys stay as they are.
        """
        with self._open() as book:
            began = tuple(event for event in events if self._report(book, event))
            now = {event.key for event in events} | set(unsearched)
            standing = book.execute("SELECT key, kind FROM events WHERE ended_at IS NULL").fetchall()
            ended = [row["key"] for row in standing if row["kind"] in kinds and row["key"] not in now]
            return Changed(began, tuple(self._end(book, ended)))

    def end(self, keys: Collection[str]) -> None:
        """Have the end of these events sent, of those that stand."""
        with self._open() as book:
            list(self._end(book, keys))

    def clouds_of(self, kinds: Collection[str]) -> dict[str, str | None]:
        """The keys of the events of these kinds that stand, with the cloud of each where it is known."""
        query = "SELECT key, kind, cloud FROM events LEFT JOIN details USING (key) WHERE ended_at IS NULL"
        with self._open() as book:
            return {row["key"]: row["cloud"] for row in book.execute(query).fetchall() if row["kind"] in kinds}

    def standing(self) -> list[str]:
        """The titles of the events that stand."""
        with self._open() as book:
            found = book.execute("SELECT title FROM events WHERE ended_at IS NULL ORDER BY began_at, key").fetchall()
        return [row["title"] for row in found]

    @contextmanager
    def sending(self, say: Say) -> Iterator[None]:
        """Be the only process that sends messages of this book: two at once would send each of them twice."""
        lock_file = self._path.with_suffix(".lock")
        with ExitStack() as held:
            try:
                make_folder(lock_file.parent)
                held.enter_context(exclusive_lock(lock_file, say, "sending messages"))
            except OSError as error:
                raise LedgerError(
                    f"{lock_file} cannot be written ({error}), and {REFUSED}: make it writable"
                ) from error
            yield

    def messages(self) -> list[Message]:
        """The messages that are still to be sent to the addresses of today: what needs a person first, then the oldest.

        One that was not taken `REFUSED_TRIES` times, or by some of its recipients only, is behind the others, since it
        may be refused for good.
        """
        oldest = (self._clock.now() - KEEP).isoformat()
        with self._open() as book:
            book.execute("DELETE FROM messages WHERE written_at < ?", (oldest,))
            _drop_taken(book)
            taken = defaultdict[int, set[str]](set)
            for number, recipient in book.execute("SELECT number, recipient FROM taken"):
                taken[number].add(recipient)
            rows = book.execute(
                "SELECT number, address, title, body, urgency, tries FROM messages "
                "ORDER BY tries >= ? OR number IN (SELECT number FROM taken), urgency <> 'act', number",
                (REFUSED_TRIES,),
            ).fetchall()
        ours = (row for row in rows if row["address"] in self._addresses)
        return [Message(**dict(row), taken=frozenset(taken[row["number"]])) for row in ours]

    def mark(self, message: Message, *, is_sent: bool, taken: Collection[str] = ()) -> None:
        """Remove a message that was sent, or count a try, and keep which recipients have taken it."""
        sent, tried = "DELETE FROM messages WHERE number = ?", "UPDATE messages SET tries = tries + 1 WHERE number = ?"
        with self._open() as book:
            book.execute(sent if is_sent else tried, (message.number,))
            book.executemany("INSERT OR IGNORE INTO taken VALUES (?, ?)", [(message.number, one) for one in taken])
            _drop_taken(book)

    def _end(self, book: sqlite3.Connection, keys: Collection[str]) -> Iterator[tuple[str, str]]:
        for key in keys:
            stands = book.execute("SELECT title FROM events WHERE key = ? AND ended_at IS NULL", (key,)).fetchone()
            if stands is not None:
                book.execute("UPDATE events SET ended_at = ? WHERE key = ?", (self._now(), key))
                self._write(book, f"over: {stands['title']}", "", "know", self._addresses)
                yield key, stands["title"]

    def _report(self, book: sqlite3.Connection, event: Event) -> bool:
        known = book.execute(
            "SELECT title, reason, ended_at FROM events LEFT JOIN details USING (key) WHERE key = ?", (event.key,)
        ).fetchone()
        _keep_details(book, event)
        if known is not None and known["ended_at"] is None and _is_same(known, event):
            # An earlier version kept no reason, nor who was given a message: those who have an address now were.
            self._give(book, event, is_written=known["reason"] is not None)
            return False
        book.execute("DELETE FROM given WHERE key = ?", (event.key,))
        book.execute(
            "INSERT INTO events (key, kind, urgency, title, began_at) VALUES (?, ?, ?, ?, ?) ON CONFLICT (key) "
            "DO UPDATE SET title = excluded.title, urgency = excluded.urgency, ended_at = NULL, "
            "began_at = CASE WHEN ended_at IS NULL THEN began_at ELSE excluded.began_at END",
            (event.key, event.kind, event.urgency, event.title, self._now()),
        )
        self._give(book, event)
        return True

    def _give(self, book: sqlite3.Connection, event: Event, *, is_written: bool = True) -> None:
        """Write the message of an event to each address that was given none, such as one that was named later."""
        rows = book.execute("SELECT address FROM given WHERE key = ?", (event.key,)).fetchall()
        new = [one for one in self._addresses if one not in {row["address"] for row in rows}]
        book.executemany("INSERT OR IGNORE INTO given (key, address) VALUES (?, ?)", [(event.key, one) for one in new])
        self._write(book, event.title, event.text, event.urgency, new if is_written else [])

    def _write(self, book: sqlite3.Connection, title: str, body: str, urgency: str, addresses: Sequence[str]) -> None:
        for address in addresses:
            book.execute(
                "INSERT INTO messages (address, title, body, urgency, written_at) VALUES (?, ?, ?, ?, ?)",
                (address, title, body, urgency, self._now()),
            )

    def _now(self) -> str:
        return self._clock.now().isoformat()

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        make_folder(self._path.parent)
        with transaction(self._path, REFUSED) as book:
            if book.execute("SELECT 1 FROM sqlite_master WHERE name = 'taken'").fetchone() is None:
                book.executescript(_TABLES)
            yield book


def _drop_taken(book: sqlite3.Connection) -> None:
    """Forget the recipients of messages that are no more: their numbers are used again."""
    book.execute("DELETE FROM taken WHERE number NOT IN (SELECT number FROM messages)")


def _keep_details(book: sqlite3.Connection, event: Event) -> None:
    book.execute(
        "INSERT INTO details (key, cloud, reason) VALUES (?, ?, ?) ON CONFLICT (key) "
        "DO UPDATE SET cloud = coalesce(excluded.cloud, cloud), reason = excluded.reason",
        (event.key, event.cloud, event.reason),
    )


def _is_same(known: sqlite3.Row, event: Event) -> bool:
    return (known["title"], known["reason"] or "") == (event.title, event.reason)
