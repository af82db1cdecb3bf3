"""Reads the events of the book, also those that ended, for whoever shows them elsewhere."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from infra.notices.book import FILE
from infra.reporting import Say

KEPT = 100  # the newest


@dataclass(frozen=True)
class KeptEvent:
    """An event as the book has it; `ended_at` None: it stands."""

    key: str
    title: str
    began_at: datetime
    ended_at: datetime | None


def kept_events(data: Path, say: Say) -> Sequence[KeptEvent]:
    """The newest events of a data folder's book; none, with a sentence, where it is damaged."""
    path = data / FILE
    if not path.is_file():
        return ()
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=30)) as book:
            if book.execute("SELECT 1 FROM sqlite_master WHERE name = 'events'").fetchone() is None:
                return ()
            rows = book.execute(
                "SELECT key, title, began_at, ended_at FROM events ORDER BY began_at DESC, key LIMIT ?", (KEPT,)
            ).fetchall()
        return [KeptEvent(key, title, _time(began), end and _time(end)) for key, title, began, end in rows]
    except (sqlite3.Error, ValueError) as error:
        say(f"the feed has no notices: {path} cannot be read ({error})")
        return ()


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
