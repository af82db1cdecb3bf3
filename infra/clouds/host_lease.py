"""The lease of your own host: a file on it, taken and freed under one lock, together with the machine lock there."""

import getpass
import json
import os
import re
import shlex
import socket
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from infra.hardware.power_cap import UNDO, UNDO_TIMEOUT_S
from infra.processes.machine_lock import Holder
from infra.remote.cleanup import end_marked
from infra.remote.deploy import HOME
from infra.remote.host import Host
from infra.remote.host_lock import LockRefusal, hold_script, read_refusal

LEASE = f"{HOME}/lease.json"
# The lease file, and in the last line the time on the host.
_READ = "[ ! -e {lease} ] || cat {lease}; printf '\\n%s' \"$(date +%s)\""
# Each step on the lease file is one command under one lock, so that of two at the same time one is first.
_LOCKED = "mkdir -p {home} && flock --close {lease}.lock sh -c {step}"
# The lease is written before the machine lock is held, so that nothing holds the lock that a release would not find.
_TAKE = """[ -s {lease} ] || {{ printf %s {text} > {lease}.new && mv {lease}.new {lease}; }}
if [ "$(cat {lease})" = {text} ]; then
{hold}
fi"""
_FREE = '[ "$(cat {lease} 2>/dev/null)" != {text} ] || rm {lease}'
LONGEST_S = 86400.0  # of a lease that names no end


def take(host: Host, lease: Mapping[str, Any], host_now_s: float) -> LockRefusal | None:
    """Take a host for this lease where no lease holds it, with its machine lock; why that could not be had, if so."""
    by = f"lease {lease['name']}, taken by {lease['holder']}"
    holder = Holder(lease["night"], os.getpid(), str(lease["since"]), "", by)
    seconds = lease.get("expires_s", host_now_s + LONGEST_S) - host_now_s
    hold = hold_script(lease["lease_id"], lease["name"], holder, seconds, otherwise=f"rm {LEASE}")
    return read_refusal(_change_lease(host, _TAKE, json.dumps(lease), hold))


def _change_lease(host: Host, step: str, text: str, hold: str = "") -> str:
    """Take a host for the lease of this text where no lease holds it, or free it where this very lease holds it."""
    script = step.format(lease=LEASE, text=shlex.quote(text), hold=hold)
    return host.output_of(_LOCKED.format(home=HOME, lease=LEASE, step=shlex.quote(script)))


def read_lease(host: Host) -> tuple[dict[str, Any] | None, float]:
    """The lease that holds a host, None where it is free, and the time on the host in seconds since 1970."""
    text, _, now_s = host.output_of(_READ.format(lease=LEASE)).rpartition("\n")
    return _parse_lease(text.strip()), float(now_s)


def _parse_lease(text: str) -> dict[str, Any] | None:
    """A lease file's content; one that cannot be read counts as an unknown holder."""
    if not text:
        return None
    unread = f"an unknown process ({LEASE} on the host cannot be read)"
    unknown = {"name": "?", "lease_id": "", "holder": unread, "since": "1970-01-01T00:00:00+00:00", "text": text}
    try:
        found = {**unknown, **json.loads(text), "text": text}
        datetime.fromisoformat(found["since"])
    except (ValueError, TypeError):
        return unknown
    return found


def end(host: Host, held: dict[str, Any]) -> None:
    """End a lease's processes, set power caps back, delete its files, and free the host, so that a failure is repeated.

    Where another lease has taken the host meanwhile, that one keeps it.
    """
    lease_id, name = str(held["lease_id"]), str(held["name"])
    if re.fullmatch(r"[\w-]+", lease_id) and re.fullmatch(r"[\w-]+", name):  # the file may hold anything
        end_marked(host, lease_id)
        folder = f"{HOME}/data/machines/{name}"
        host.output_of(f"[ ! -e {folder}/{UNDO} ] || sh {folder}/{UNDO}", timeout_s=UNDO_TIMEOUT_S)
        host.output_of(f"rm -rf {HOME}/leases/{lease_id} {folder}")
    _change_lease(host, _FREE, str(held["text"]))


def who(held: Mapping[str, Any]) -> str:
    """A lease as its holder wrote it; earlier ones do not name their night."""
    night = f"night {held['night']}, " if held.get("night") else ""
    return f"{night}lease {held['name']}, taken by {held['holder']} at {held['since']}"


def this_process() -> str:
    """The user, the computer and the id of this process, for whoever finds the host held."""
    return f"{getpass.getuser()} on {socket.gethostname()}, process {os.getpid()}"
