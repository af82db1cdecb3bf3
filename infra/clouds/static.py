"""Machines that are yours already: nothing is made or destroyed, and one lease at a time holds one.

A machine's host key is known from your known_hosts before it is met; a machine that is not in there is refused.
"""

import getpass
import json
import os
import re
import shlex
import socket
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from paramiko.hostkeys import HostKeys

from bench.errors import (
    CloudDeniedError,
    CloudError,
    CloudRefusedError,
    HostError,
    HostKeyError,
    LoginRefusedError,
    UsageError,
)
from bench.machine.names import PREFIX, MachineName
from bench.suite.machine import Machine
from infra.clock import Clock
from infra.clouds.cloud import CloudMachine, Leftover, MachineOrder, Offer, Snapshot
from infra.remote.cleanup import end_marked
from infra.remote.deploy import HOME
from infra.remote.host import Access, Host

KIND = "own"  # the one kind of machine that such a host offers
LEASE = f"{HOME}/lease.json"
KEY_NAMES = ("id_ed25519", "id_ecdsa", "id_rsa")
KEY_TYPES = ("ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521", "ssh-rsa")
SSH_PORT = 22
_TARGET = re.compile(r"ssh:(?P<user>[\w.-]+)@(?P<host>[\w.-]+|\[[0-9a-fA-F:.]+\])(?::(?P<port>\d{1,5}))?")


@dataclass(frozen=True)
class OwnHost:
    """A host of one's own, as a target names it."""

    user: str
    address: str
    port: int

    def __str__(self) -> str:
        """The target, one spelling for each host."""
        address = f"[{self.address}]" if ":" in self.address else self.address
        return f"ssh:{self.user}@{address}:{self.port}"


def is_own(target: str) -> bool:
    """Whether a target means a host of one's own."""
    return target.startswith("ssh:")


def parse_target(target: str) -> OwnHost:
    """Read `ssh:user@host[:port]`; UsageError where it is built otherwise."""
    found = _TARGET.fullmatch(target)
    if found is None or not 0 < int(found["port"] or SSH_PORT) < 1 << 16:
        raise UsageError(f"--target {target!r} is not built as ssh:user@host or ssh:user@host:port")
    return OwnHost(found["user"], found["host"].strip("[]"), int(found["port"] or SSH_PORT))


def read_access(target: str, key: Path | None, known_hosts: Path | None) -> Access:
    """How a host of one's own is reached; UsageError where no key is there, or the host's own key is not known."""
    own, home = parse_target(target), Path.home() / ".ssh"
    keys = [key] if key is not None else [home / name for name in KEY_NAMES]
    private = next((path for path in keys if path.is_file()), None)
    if private is None:
        tried = ", ".join(map(str, keys))
        raise UsageError(f"there is no SSH key at {tried}: set NIGHTBENCH_SSH_KEY to the private key for {target}")
    return Access(own.address, own.port, own.user, private, _known_key(own, known_hosts or home / "known_hosts"))


def _known_key(own: OwnHost, file: Path) -> str:
    name = own.address if own.port == SSH_PORT else f"[{own.address}]:{own.port}"
    known = HostKeys(str(file)).lookup(name) if file.is_file() else None
    for kind in KEY_TYPES if known is not None else ():
        if known is not None and kind in known:
            return f"{kind} {known[kind].get_base64()}"
    scan = f"ssh-keyscan -p {own.port} -t ed25519 {own.address}"
    raise UsageError(
        f"the host key of {name} is not in {file}, and none is taken on first sight: see it with `{scan}`, compare it "
        "with what the host itself says (ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub), and add that line"
    )


def machine_on_own_host(machine: Machine) -> Machine:
    """What a suite's [machine] table asks for where there is nothing to choose: only the lease's length counts."""
    return Machine(kind=KIND, lease_minutes=machine.lease_minutes)


class StaticCloud:
    """One host of one's own. Its lease file is the record of who holds it, made in one step by whoever is first."""

    settle_s = 0.0
    is_shared = True  # another data folder's lease on the same host is not ours to end

    def __init__(self, target: str, reach: Callable[[], Host], clock: Clock, prefix: str = PREFIX) -> None:
        self.name = target
        self.prefix = prefix
        self._reach = reach
        self._clock = clock

    @contextmanager
    def _host(self) -> Iterator[Host]:
        """The host for one question; its errors are a cloud's."""
        try:
            with closing(self._reach()) as host:
                yield host
        except (HostKeyError, LoginRefusedError, UsageError) as error:
            raise CloudDeniedError(str(error)) from error
        except HostError as error:
            raise CloudError(str(error)) from error

    def offers(self) -> list[Offer]:
        """The host itself, free of charge."""
        return [Offer(kind=KIND, usd_per_hour=0.0)]

    def regions(self) -> list[str]:
        """None: it is where it is."""
        return []

    def rent(self, order: MachineOrder) -> CloudMachine:
        """Take the host for this lease; CloudRefusedError names who holds it where somebody does.

        A lease that is past its time holds nothing: what it left running is ended first.
        """
        since = self._clock.now().isoformat()
        words = {"name": str(order.name), "lease_id": order.name.lease_id, "holder": _whoever_asks(), "since": since}
        with self._host() as host:
            held = _read_lease(host)
            if held is not None and held["name"] != words["name"] and self._is_past(held):
                _end(host, held)
            # The shell makes the file or fails: of two who are first, one is.
            text = shlex.quote(json.dumps(words))
            host.output_of(f"mkdir -p {HOME} && set -C && {{ echo {text} > {LEASE}; }} 2>/dev/null || true")
            held = _read_lease(host)
        if held is None or held["name"] != words["name"]:
            who = "somebody" if held is None else f"lease {held['name']}, taken by {held['holder']} at {held['since']}"
            raise CloudRefusedError(
                f"{self.name} is held by {who}: wait until that night is over, or, where it is dead, "
                "say `nightbench reap` on the computer that began it"
            )
        return self._found(held)

    def _is_past(self, held: dict[str, Any]) -> bool:
        name = MachineName.parse(str(held["name"]), self.prefix)
        return name is not None and name.is_past(self._clock.now())

    def _found(self, held: dict[str, Any]) -> CloudMachine:
        name, since = str(held["name"]), str(held["since"])
        address = parse_target(self.name).address
        began = datetime.fromisoformat(since)
        return CloudMachine(name, name, address=address, kind=KIND, usd_per_hour=0.0, created_at=began)

    def find_by_id(self, machine_id: str) -> CloudMachine | None:
        """The lease of this name, while it holds the host."""
        return next((found for found in self.find_ours() if found.machine_id == machine_id), None)

    def find(self, name: str) -> list[CloudMachine]:
        """The same, as a list of one or none."""
        return [found for found in self.find_ours() if found.name == name]

    def find_ours(self) -> list[CloudMachine]:
        """Whatever holds the host now."""
        with self._host() as host:
            held = _read_lease(host)
        return [] if held is None else [self._found(held)]

    def release(self, machine_id: str) -> None:
        """End everything of this lease on the host and let it go; another lease's is left alone."""
        with self._host() as host:
            held = _read_lease(host)
            if held is not None and held["name"] == machine_id:
                _end(host, held)

    def leftovers(self) -> list[Leftover]:
        """Nothing is made besides."""
        return []

    def remove(self, leftover: Leftover) -> None:
        """There is none."""

    def snapshot(self, machine_id: str, name: str) -> None:
        """Refuse: a host of one's own is kept as it is."""
        raise CloudRefusedError(f"{machine_id} on {self.name} is your own host, of which no image {name} is made")

    def snapshots(self) -> list[Snapshot]:
        """None."""
        return []


def _read_lease(host: Host) -> dict[str, Any] | None:
    """Who holds a host; None where nobody does. A file that cannot be read is a holder whom nobody knows."""
    text = host.output_of(f"[ ! -e {LEASE} ] || cat {LEASE}").strip()
    if not text:
        return None
    unread = f"somebody whose {LEASE} cannot be read"
    nobody = {"name": "?", "lease_id": "", "holder": unread, "since": "1970-01-01T00:00:00+00:00"}
    try:
        found = {**nobody, **json.loads(text)}
        datetime.fromisoformat(found["since"])
    except (ValueError, TypeError):
        return nobody
    return found


def _end(host: Host, held: dict[str, Any]) -> None:
    """End a lease's processes, remove its files, and let go of the host last, so that a broken release is repeated."""
    lease_id, name = str(held["lease_id"]), str(held["name"])
    if re.fullmatch(r"[\w-]+", lease_id) and re.fullmatch(r"[\w-]+", name):  # what stands in a file may be anything
        end_marked(host, lease_id)
        host.output_of(f"rm -rf {HOME}/leases/{lease_id} {HOME}/data/machines/{name}")
    host.output_of(f"rm -f {LEASE}")


def _whoever_asks() -> str:
    return f"{getpass.getuser()} on {socket.gethostname()}, process {os.getpid()}"
