"""Where a night measures: this computer, a host of your own, a server that already runs, or a cloud.

And which hosts of your own send the load to a server that already runs, where one computer cannot send it.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

from pydantic import Field, model_validator

from bench.errors import UsageError
from bench.frozen import Frozen
from bench.suite.endpoint import API_KEY
from bench.suite.machine import Machine
from bench.suite.workload import Workload

LOCAL = "local"
OWN = "own"  # the kind of machine that a host of your own is
SSH_PORT = 22
METER = "meter"
_PORTS = {"http": 80, "https": 443}
_SSH = re.compile(r"ssh:(?P<user>[\w.-]+)@(?P<host>[\w.-]+|\[[0-9a-fA-F:.]+\])(?::(?P<port>\d{1,5}))?")
_URL = re.compile(
    r"(?P<scheme>https?)://(?P<host>[^\[\]:/?#@\s]+|\[[0-9a-f:.]+\])(?::(?P<port>\d{0,5}))?/?", re.IGNORECASE
)


@dataclass(frozen=True)
class OwnHost:
    """Your own host, as a target names it."""

    user: str
    address: str
    port: int

    def __str__(self) -> str:
        """Return the target in its full form, the same for every spelling of it."""
        address = f"[{self.address}]" if ":" in self.address else self.address
        return f"ssh:{self.user}@{address}:{self.port}"


@dataclass(frozen=True)
class Target:
    """Where a night measures, and what differs there. `name` is the form that records and leases have."""

    name: str
    is_here: bool = False  # the load runs on this computer, and the night holds its machine lock
    is_scaled: bool = False  # a suite runs as its [local] table says
    is_rented: bool = False  # machines are created for a night, several at the same time, and deleted after it
    host: OwnHost | None = None  # over SSH
    url: str | None = None  # of a server that already runs: no engine and no model is installed or started
    kind: str | None = None  # of the machine that is leased; None: the suite's

    def leased(self, machine: Machine) -> Machine:
        """Return the machine to lease for a suite with this [machine] table."""
        if self.kind is None:
            return machine
        return Machine(name=machine.name, kind=self.kind, lease_minutes=machine.lease_minutes)


@lru_cache(maxsize=64)
def parse_target(text: str) -> Target:
    """Return the target that a command, a record or a lease names; a word without a colon is the name of a cloud.

    Raises UsageError if an `ssh:` host or a URL does not have the right form.
    """
    if text == LOCAL:
        return Target(text, is_here=True, is_scaled=True)
    if text.startswith("ssh:"):
        host = _own_host(text)
        return Target(str(host), host=host, kind=OWN)
    if text.lower().startswith(("http://", "https://")):
        url = _url(text)
        return Target(url, is_here=True, url=url, kind=LOCAL)
    return Target(text, is_rented=True)


def _own_host(text: str) -> OwnHost:
    found = _SSH.fullmatch(text)
    if found is None or not _is_port(port := int(found["port"] or SSH_PORT)):
        raise UsageError(f"--target {text!r} must have the form ssh:user@host or ssh:user@host:port")
    return OwnHost(found["user"], found["host"].strip("[]"), port)


def _url(text: str) -> str:
    if "@" in re.split("[/?#]", text)[2]:
        raise UsageError(f"--target has a user or a password, which would be recorded: put the API key into {API_KEY}")
    found = _URL.fullmatch(text)
    if found is None or not _is_port(port := int(found["port"] or _PORTS[found["scheme"].lower()])):
        raise UsageError(f"--target {text!r} must have the form http://host:port or https://host:port, without a path")
    return f"{found['scheme']}://{found['host']}:{port}".lower()


def _is_port(port: int) -> bool:
    return 0 < port < 1 << 16


class Client(Frozen):
    """The client hosts of a server that already runs. Each sends its share of every run, all from one moment.

    An open loop's arrivals and a closed loop's concurrency are divided among them, so that all together are what the
    scenario asks for. Each has `workers` processes. A host needs sshd and Python 3.11 or later.
    """

    hosts: tuple[str, ...] = Field(default=(), strict=False)  # `user@host` or `user@host:port`; none: this computer

    def own_hosts(self) -> tuple[OwnHost, ...]:
        """The hosts in order; UsageError where one does not have the right form."""
        return tuple(_client_host(text) for text in self.hosts)

    @model_validator(mode="after")
    def _hosts_are_distinct(self) -> Self:
        try:
            twice = [host for host, count in Counter(self.own_hosts()).items() if count > 1]
        except UsageError as error:
            raise ValueError(str(error)) from error
        if twice:
            msg = f"{str(twice[0]).removeprefix('ssh:')} is named twice, and each host sends one share of the load"
            raise ValueError(msg)
        return self

    def require_work(self, entries: Sequence[tuple[str, Workload]]) -> None:
        """Raise ValueError where a load cannot be divided among the hosts; each load with its scenario's name."""
        for name, work in entries if self.hosts else ():
            if (reason := _reason_against(work, len(self.hosts))) is not None:
                msg = f"scenario {name} cannot be divided among the {len(self.hosts)} hosts of [client]: {reason}"
                raise ValueError(msg)


def _client_host(text: str) -> OwnHost:
    try:
        host = parse_target(f"ssh:{text}").host
    except UsageError:
        host = None
    if host is None:
        raise UsageError(f"{text!r} must have the form user@host or user@host:port")
    return host


def _reason_against(work: Workload, hosts: int) -> str | None:
    """Why so many hosts cannot share a load; None if they can."""
    lanes = hosts * work.workers
    if work.driver != METER:
        return f'the driver {work.driver} has one client: use driver = "{METER}"'
    if work.prompts.kind == "sharegpt":
        return "its prompts are read from a file of this computer: give it other prompts"
    if work.concurrency is not None and work.concurrency < lanes:
        return f"they have {lanes} workers, and its concurrency is {work.concurrency}: give fewer hosts or workers"
    if work.total_count < lanes:
        return f"they have {lanes} workers, and it has {work.total_count} requests: give fewer hosts or workers"
    return None
