"""Limits of this host: open files, local ports, free disk space; checked before anything is sent."""

import os
from pathlib import Path

from meter.errors import OutsideWorldError

SPARE_FILES = 64  # our own files, and room for connections being replaced
PORT_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def raise_open_files(connections: int, *, needs_all: bool) -> None:
    """Raise the soft limit of open files to what the connections need.

    Only a closed loop `needs_all`: an open loop opens connections as they are needed. Raises OutsideWorldError if the
    hard limit is too low.
    """
    hard = _raise_files(connections + SPARE_FILES)
    if needs_all and hard is not None and hard < connections + SPARE_FILES:
        wanted = connections + SPARE_FILES
        raise OutsideWorldError(
            f"{connections} connections need {wanted} open files; this host's hard limit is {hard} (ulimit -Hn)."
        )


def _raise_files(wanted: int) -> int | None:
    """Raise the soft limit towards `wanted`; return the hard limit, None if there is none."""
    try:
        import resource  # noqa: PLC0415 -- not on every system
    except ImportError:
        return None
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    if soft not in {unlimited, hard} and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return None if hard == unlimited else hard


def check_ports(connections: int, port_range: Path = PORT_RANGE) -> None:
    """Refuse more connections to one server than this host has local ports; on Linux only."""
    try:
        low, high = (int(word) for word in port_range.read_text().split())
    except (OSError, ValueError):
        return
    if connections > high - low + 1:
        raise OutsideWorldError(
            f"{connections} connections need as many local ports; this host has {high - low + 1} "
            f"({low} to {high}; sysctl net.ipv4.ip_local_port_range)."
        )


def check_disk(folder: Path, wanted: int) -> None:
    """Refuse to begin if fewer than `wanted` bytes are free on the disk of the folder."""
    found = os.statvfs(folder)
    free = found.f_bavail * found.f_frsize
    if free < wanted:
        raise OutsideWorldError(
            f"The report may need {wanted / 1e6:.1f} MB; the disk of {folder} has {free / 1e6:.1f} MB free."
        )
