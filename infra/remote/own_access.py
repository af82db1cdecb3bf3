"""How to reach a host of your own: your private key, and the host key that your known_hosts file has."""

from pathlib import Path

from bench.errors import UsageError
from bench.suite.target import OwnHost
from infra.remote.host import Access
from infra.remote.ssh_connection import known_host_key, known_name

KEY_NAMES = ("id_ed25519", "id_ecdsa", "id_rsa")
KEY_TYPES = ("ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521", "ssh-rsa")


def read_access(own: OwnHost, key: Path | None, known_hosts: Path | None) -> Access:
    """How to reach your own host; UsageError where no private key is found or the host key is unknown."""
    home = Path.home() / ".ssh"
    keys = [key] if key is not None else [home / name for name in KEY_NAMES]
    private = next((path for path in keys if path.is_file()), None)
    if private is None:
        tried = ", ".join(map(str, keys))
        raise UsageError(f"no SSH key found at {tried}: set NIGHTBENCH_SSH_KEY to the private key for {own}")
    return Access(own.address, own.port, own.user, private, _known_key(own, known_hosts or home / "known_hosts"))


def _known_key(own: OwnHost, file: Path) -> str:
    if (known := known_host_key(file, own.address, own.port, KEY_TYPES)) is not None:
        return known
    name, scan = known_name(own.address, own.port), f"ssh-keyscan -p {own.port} -t ed25519 {own.address}"
    raise UsageError(
        f"the host key of {name} is not in {file}: print it with `{scan}`, compare it with the output of "
        f"`ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` on the host, and add the line to {file}"
    )
