"""The machine lock of a host over SSH: a process there holds it for a lease, as a night on that computer holds it.

The scripts run in the home folder of the user that logs in. Each prints one line if the lock cannot be had.
"""

import json
import shlex
from dataclasses import asdict
from typing import Literal, NamedTuple

from infra.processes.detached import MARK
from infra.processes.machine_lock import Holder, read_holder
from infra.remote.deploy import HOME
from infra.settings import MACHINE_LOCK

_SAYS = "machine lock:"
# Of another user's file only reading is needed to lock it; opening it never creates it, which the kernel may forbid in
# a folder like /tmp. `set -C` creates a new file or nothing, and follows no link.
_LOCK = """[ ! -e {home}/host.env ] || . ./{home}/host.env
file=${{NIGHTBENCH_MACHINE_LOCK:-{default}}}
[ -e "$file" ] || [ -L "$file" ] || (umask 0; set -C; : > "$file") 2> /dev/null
if [ -L "$file" ] || [ ! -f "$file" ] || [ ! -r "$file" ]; then
  {otherwise}; echo "{says} unusable $file"; exit 0
fi
exec 9< "$file"
if ! flock -w 1 9; then
  holder=$(head -c 2000 "$file" | tr -d '\\n')
  case $holder in *{name}*) exit 0;; esac
  {otherwise}; echo "{says} busy $holder"; exit 0
fi"""
# The holder inherits the open file and ends with the lease, or when the lease expires. dd creates no file.
_HOLD = """
env {mark} setsid sleep {seconds:.0f} > /dev/null 2>&1 < /dev/null &
printf %s {text} | dd of=/proc/self/fd/9 conv=nocreat 2> /dev/null || true"""


class LockRefusal(NamedTuple):
    """Why a host's lock was not taken: who holds it, or which file cannot be locked."""

    state: Literal["busy", "unusable"]
    detail: str


def hold_script(lease_id: str, name: str, holder: Holder, seconds: float, otherwise: str) -> str:
    """A script that holds the lock for the lease of this name for so long, unless it is held for it already.

    Where it cannot be held, the script runs the command `otherwise`, prints why, and exits with 0.
    """
    mark, text = shlex.quote(f"{MARK}={lease_id}"), shlex.quote(json.dumps(asdict(holder)))
    return _lock(name, otherwise) + _HOLD.format(mark=mark, seconds=max(0.0, seconds), text=text)


def look_script() -> str:
    """A script that prints why the lock cannot be held now, and nothing where it can."""
    return _lock("no lease has this name", ":")


def _lock(name: str, otherwise: str) -> str:
    return _LOCK.format(home=HOME, default=MACHINE_LOCK, says=_SAYS, name=shlex.quote(name), otherwise=otherwise)


def read_refusal(output: str) -> LockRefusal | None:
    """What such a script printed; None where the lock was held or is free."""
    line = next((line for line in output.splitlines() if line.startswith(f"{_SAYS} ")), None)
    if line is None:
        return None
    state, _, detail = line.removeprefix(f"{_SAYS} ").partition(" ")
    if state == "busy":
        return LockRefusal("busy", read_holder(detail.encode()) or "another process, which did not write its name")
    return LockRefusal("unusable", detail)
