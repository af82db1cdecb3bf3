"""The CPU time of the process trees of a run: the night, its server and its load driver, read from /proc."""

import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from infra.processes.detached import MARK

PROC = Path("/proc")
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
KTHREADD = 2  # the parent of all kernel threads
# Of /proc/<pid>/stat, counted from the field behind the name.
_PARENT, _SESSION, _USER, _SYSTEM, _WAITED_USER, _WAITED_SYSTEM, _BEGAN, _PAGES = 1, 3, 11, 12, 13, 14, 19, 21


@dataclass(frozen=True)
class ProcessTimes:
    """One process; times are in seconds, `waited_s` of its children that have exited and were waited for."""

    pid: int
    name: str
    parent: int
    session: int
    began: int
    cpu_s: float
    waited_s: float
    rss_bytes: int

    @property
    def total_s(self) -> float:
        """Its CPU time with that of its exited children."""
        return self.cpu_s + self.waited_s


class OwnProcesses:
    """The processes of a run, followed from look to look.

    A process is ours if it is one of `roots`, has one of these sessions, is the child of one of ours, or has the
    lease's mark in its environment. What it was at first sight it remains, also when its parent exits.
    """

    def __init__(self, roots: Collection[int], sessions: Collection[int], mark: str | None = None) -> None:
        self._roots = frozenset(roots)
        self._sessions = frozenset(sessions)
        self._mark = None if mark is None else f"{MARK}={mark}".encode()
        self._ours: dict[int, ProcessTimes] = {}
        self._others: set[int] = set()
        self._ever: set[int] = set()
        self.cpu_s = 0.0  # since the first look, with processes that have exited
        self.look()
        self.cpu_s = 0.0

    def look(self) -> None:
        """Find our processes as they are now, and add their CPU time since the last look."""
        pids = listed_pids()
        self._others &= pids
        now = {one.pid: one for one in map(read_process, sorted(pids - self._others)) if one is not None}
        ours = self._ours_among(now)
        self._others |= now.keys() - ours.keys()
        self._ever |= ours.keys()
        self.cpu_s += spent_s(self._ours, ours)
        self._ours = ours

    @property
    def ever(self) -> frozenset[int]:
        """The pid of every process that was ours at some look."""
        return frozenset(self._ever)

    def of_session(self, session: int) -> list[ProcessTimes]:
        """Our processes of one session, as at the last look."""
        return [one for one in self._ours.values() if one.session == session]

    def _ours_among(self, now: dict[int, ProcessTimes]) -> dict[int, ProcessTimes]:
        ours = {pid: one for pid, one in now.items() if pid in self._ours and self._ours[pid].began == one.began}
        left = [one for pid, one in now.items() if pid not in ours]
        while found := [one for one in left if self._is_ours(one, ours)]:
            ours |= {one.pid: one for one in found}
            left = [one for one in left if one.pid not in ours]
        return ours

    def _is_ours(self, one: ProcessTimes, ours: Collection[int]) -> bool:
        is_kin = one.pid in self._roots or one.session in self._sessions or one.parent in ours
        return is_kin or (one.parent != KTHREADD and self._is_marked(one.pid))

    def _is_marked(self, pid: int) -> bool:
        try:
            return self._mark is not None and self._mark in (PROC / str(pid) / "environ").read_bytes().split(b"\0")
        except OSError:  # it has exited, or belongs to another user
            return False


def spent_s(before: dict[int, ProcessTimes], now: dict[int, ProcessTimes]) -> float:
    """The CPU time between two looks; that of a child which exited is in what its parent waited for."""
    living = sum(one.cpu_s - (before[one.pid].cpu_s if one.pid in before else 0.0) for one in now.values())
    waited = sum(one.waited_s - (before[one.pid].waited_s if one.pid in before else 0.0) for one in now.values())
    counted = sum(one.total_s for pid, one in before.items() if pid not in now)
    return living + max(0.0, waited - counted)


def listed_pids() -> set[int]:
    """The pid of every process that this user may see."""
    return {int(entry.name) for entry in os.scandir(PROC) if entry.name.isdigit()}


def read_all(pids: Iterable[int]) -> list[ProcessTimes]:
    """These processes as they are now, without those that have exited."""
    return [one for one in map(read_process, pids) if one is not None]


def read_process(pid: int) -> ProcessTimes | None:
    """One process as it is now; None if it has exited."""
    try:
        text = (PROC / str(pid) / "stat").read_bytes()
    except OSError:
        return None
    head, _, rest = text.rpartition(b") ")
    fields = rest.split()
    return ProcessTimes(
        pid=pid,
        name=head.partition(b"(")[2].decode(errors="replace"),
        parent=int(fields[_PARENT]),
        session=int(fields[_SESSION]),
        began=int(fields[_BEGAN]),
        cpu_s=(int(fields[_USER]) + int(fields[_SYSTEM])) / TICKS_PER_S,
        waited_s=(int(fields[_WAITED_USER]) + int(fields[_WAITED_SYSTEM])) / TICKS_PER_S,
        rss_bytes=int(fields[_PAGES]) * PAGE_BYTES,
    )
