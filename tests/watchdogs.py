"""Ends watchdogs, for tests of the other nets and of leases that stay open."""

from pathlib import Path

from infra.processes import detached


def end_watchdogs(data: Path) -> None:
    """Kill every watchdog of a data folder."""
    for pid_file in (data / "watchdogs").glob("*.pid"):
        session = detached.session_of(pid_file)
        if session is not None:
            detached.end_session(session, patience_s=0.0)
