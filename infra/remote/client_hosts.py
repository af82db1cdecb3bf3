"""How the load client reaches the client hosts of a suite: by OpenSSH's own program, with their host keys pinned."""

from pathlib import Path

from bench.loadgen.drivers.target import ClientHost
from bench.suite.target import Client, OwnHost
from infra.remote.own_access import read_access

CONNECT_S = 15
# A host that is silent for so long is lost; the load of a run is not valid without its share.
SILENT_S, SILENT_TIMES = 5, 3


def reach_clients(client: Client, key: Path | None, known_hosts: Path | None) -> tuple[ClientHost, ...]:
    """The hosts of a suite; UsageError where no private key is found or a host key is unknown."""
    return tuple(_reach(own, key, known_hosts) for own in client.own_hosts())


def _reach(own: OwnHost, key: Path | None, known_hosts: Path | None) -> ClientHost:
    access = read_access(own, key, known_hosts)
    options = {
        "BatchMode": "yes",
        "StrictHostKeyChecking": "yes",
        "UserKnownHostsFile": str(known_hosts or Path.home() / ".ssh" / "known_hosts"),
        "GlobalKnownHostsFile": "/dev/null",
        "IdentitiesOnly": "yes",
        "ConnectTimeout": str(CONNECT_S),
        "ServerAliveInterval": str(SILENT_S),
        "ServerAliveCountMax": str(SILENT_TIMES),
        "Compression": "no",
        "LogLevel": "ERROR",
    }
    words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    login = ("-i", str(access.private_key), "-p", str(own.port), f"{own.user}@{own.address}")
    # No configuration of the user: what it changes would be in no record.
    return ClientHost(str(own).removeprefix("ssh:"), ("ssh", "-F", "none", "-T", *words, *login))
