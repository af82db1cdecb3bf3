"""A real OpenSSH server as a machine of its own: its address, host key, HOME folder, and processes that end with it.

Every process of such a machine carries `LC_TEST_MACHINE` in its environment, wherever it has moved itself. The server
is the one on PATH, else the distribution's package, unpacked into the cache folder and not installed.
"""

import fcntl
import os
import shutil
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import psutil
import pytest

from infra.processes import detached
from infra.settings import Settings

MARK = "LC_TEST_MACHINE"  # every child inherits what looks like a locale
PACKAGES = ("openssh-server", "openssh-sftp-server", "libwrap0")
PLEASE_WAIT = "Please wait while we get your droplet ready..."
START_PATIENCE_S = 300.0
DOWNLOAD_PATIENCE_S = 300.0
NOTHING: Mapping[str, str] = MappingProxyType({})

# What the first boot of a droplet answers to everything, and what cd and sftp need, since sshd goes to passwd's home.
WRAPPER = """#!/bin/sh
if [ -e "{folder}/please-wait" ]; then echo "{please_wait}"; exit 0; fi
cd "$HOME" || exit 1
if [ -n "$SSH_ORIGINAL_COMMAND" ]; then exec /bin/sh -c "$SSH_ORIGINAL_COMMAND"; fi
exec /bin/sh
"""
CONFIG = """
ListenAddress {address}:{port}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized_keys
ForceCommand {folder}/wrapper
Subsystem sftp {sftp_server}
PidFile none
StrictModes no
UsePAM no
UseDNS no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
AllowTcpForwarding no
X11Forwarding no
PrintMotd no
MaxStartups 100
LoginGraceTime 600
SetEnv {environment}
"""
# A server that runs as root insists on a user and a folder for its unprivileged half. Both are given to it in a mount
# namespace of its own, so that nothing of this computer is changed.
AS_ROOT = """
set -e
grep -q ^sshd: /etc/passwd || { cat /etc/passwd; echo sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin; } > "$1/passwd"
[ ! -e "$1/passwd" ] || mount --bind "$1/passwd" /etc/passwd
[ -d /run/sshd ] || { mount -t tmpfs tmpfs /run; mkdir -m 755 /run/sshd; }
shift
exec "$@"
"""


class NoServerError(Exception):
    """There is no sshd here, and none can be had; says why."""


@dataclass(frozen=True)
class Server:
    """Programs of an OpenSSH server, and the folder of a library that they may need."""

    sshd: Path
    sftp_server: Path
    library: Path | None

    @property
    def environment(self) -> dict[str, str]:
        """What sshd is started with."""
        return {} if self.library is None else {"LD_LIBRARY_PATH": str(self.library)}


def find_server(cache: Path) -> Server:
    """The server on PATH, else the one in the cache, which is filled the first time; NoServerError where neither is."""
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])
    installed = shutil.which("sshd", path=path)
    sftp = [Path(name) for name in ("/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server")]
    found = [program for program in sftp if program.exists()]
    if installed and found:
        return Server(Path(installed), found[0], None)
    folder = cache / "sshd"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / ".sshd.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not folder.exists():
            _unpack(folder)
    libraries = sorted(folder.glob("usr/lib/*/libwrap.so*"))
    library = libraries[0].parent if libraries else None
    return Server(folder / "usr/sbin/sshd", folder / "usr/lib/openssh/sftp-server", library)


def _unpack(folder: Path) -> None:
    beside = folder.with_name(".sshd.unfinished")
    shutil.rmtree(beside, ignore_errors=True)
    (beside / "deb").mkdir(parents=True)
    if not _apt(["apt-get", "download", *PACKAGES], beside / "deb"):
        _apt(["apt-get", "update"], beside)
        if not _apt(["apt-get", "download", *PACKAGES], beside / "deb"):
            raise NoServerError("there is no sshd on PATH, and apt-get cannot download openssh-server")
    for package in (beside / "deb").glob("*.deb"):
        subprocess.run(["dpkg", "-x", package, beside], check=True, timeout=DOWNLOAD_PATIENCE_S)
    shutil.rmtree(beside / "deb")
    beside.rename(folder)


def _apt(argv: list[str], folder: Path) -> bool:
    try:
        done = subprocess.run(argv, cwd=folder, capture_output=True, timeout=DOWNLOAD_PATIENCE_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def make_key(path: Path) -> str:
    """Make an ed25519 pair there and return its public line, without the comment."""
    path.unlink(missing_ok=True)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", path], check=True)
    return " ".join(path.with_name(path.name + ".pub").read_text().split()[:2])


@dataclass
class Sshd:
    """One machine: `home` is its disk; everything else of it is in `folder`, which it cannot see by itself."""

    folder: Path
    address: str
    port: int
    host_public_key: str
    server: Server
    mark: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def home(self) -> Path:
        """What its processes know as HOME."""
        return self.folder / "home"

    def authorize(self, *public_keys: str) -> None:
        """Let exactly these keys log in."""
        (self.folder / "authorized_keys").write_text("".join(f"{key}\n" for key in public_keys))

    def please_wait(self, is_booting: bool) -> None:
        """Answer every command as the first boot of a droplet does, or no longer."""
        marker = self.folder / "please-wait"
        marker.touch() if is_booting else marker.unlink(missing_ok=True)

    def start(self) -> None:
        """Start the server and wait until it listens."""
        argv = [str(self.server.sshd), "-D", "-e", "-f", str(self.folder / "config")]
        if os.geteuid() == 0:
            argv = ["unshare", "-m", "/bin/sh", "-c", AS_ROOT, "sh", str(self.folder), *argv]
        with (self.folder / "sshd.log").open("ab") as log:
            self.process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **self.server.environment},
                start_new_session=True,
            )
        until = time.monotonic() + START_PATIENCE_S
        while not self._listens():
            if self.process.poll() is not None or time.monotonic() > until:
                raise NoServerError(f"sshd does not start: {(self.folder / 'sshd.log').read_text().strip()[-400:]}")
            time.sleep(0.02)

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((self.address, self.port)) == 0

    def connections(self) -> list[psutil.Process]:
        """The server's own processes for the connections that are open now."""
        if self.process is None:
            return []
        with suppress(psutil.NoSuchProcess):
            children = psutil.Process(self.process.pid).children(recursive=True)
            return [child for child in children if _is_sshd(child)]
        return []

    def marked(self) -> list[psutil.Process]:
        """Every living process that was started on this machine."""
        return [process for process in psutil.process_iter() if _has_mark(process, self.mark)]

    def cut(self) -> None:
        """Cut every connection as a dying link does: what runs detached lives on."""
        for process in self.connections():
            with suppress(psutil.NoSuchProcess):
                process.kill()

    def stop(self) -> None:
        """Take the machine away with everything that runs on it; its disk stays until somebody removes it."""
        if self.process is not None:
            connections = self.connections()
            self.process.kill()
            self.process.wait()
            detached.end(connections, patience_s=0.0)
            self.process = None
        while left := self.marked():  # a process may start another while it is being ended
            for process in left:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            psutil.wait_procs(left, timeout=5)


def _is_sshd(process: psutil.Process) -> bool:
    try:
        return process.name().startswith("sshd")
    except psutil.NoSuchProcess:
        return False


def _has_mark(process: psutil.Process, mark: str) -> bool:
    try:
        return process.environ().get(MARK) == mark and process.status() != psutil.STATUS_ZOMBIE
    except (OSError, psutil.Error):
        return False


def make_machine(
    folder: Path, cache: Path, *, address: str = "127.0.0.1", port: int = 0, environment: Mapping[str, str] = NOTHING
) -> Sshd:
    """A machine whose files are in place and whose server is not started; `port` 0 takes a free one.

    A host key that is in the folder already, as `host_key`, is taken; raises NoServerError where there is no sshd.
    """
    server = find_server(cache)
    home = folder / "home"
    home.mkdir(parents=True, exist_ok=True)
    key = folder / "host_key"
    public = " ".join(_public_of(key).split()[:2]) if key.exists() else make_key(key)
    machine = Sshd(folder, address, port or _free_port(address), public, server)
    own = {"HOME": home, MARK: machine.mark, "PATH": f"{home}/bin:{os.environ['PATH']}"}
    own |= {"NIGHTBENCH_MACHINE_LOCK": folder / "machine.lock", **environment}  # a computer of its own
    settings = {
        "folder": folder,
        "address": address,
        "port": machine.port,
        "sftp_server": server.sftp_server,
        "please_wait": PLEASE_WAIT,
        "environment": " ".join(f'"{name}={value}"' for name, value in own.items()),
    }
    (folder / "wrapper").write_text(WRAPPER.format(**settings))
    (folder / "wrapper").chmod(0o755)
    (folder / "config").write_text(CONFIG.format(**settings))
    return machine


def _public_of(key: Path) -> str:
    key.chmod(0o600)
    return subprocess.run(["ssh-keygen", "-y", "-f", key], check=True, capture_output=True, text=True).stdout


def _free_port(address: str) -> int:
    with socket.socket() as probe:
        probe.bind((address, 0))
        return int(probe.getsockname()[1])


@contextmanager
def running_machine(
    folder: Path, *public_keys: str, address: str = "127.0.0.1", environment: Mapping[str, str] = NOTHING
) -> Iterator[Sshd]:
    """A machine that lets these keys in; the test is skipped, with the reason, where no sshd can be had."""
    try:
        machine = make_machine(folder, Settings().cache, address=address, environment=environment)
        machine.authorize(*public_keys)
        machine.start()
    except NoServerError as error:
        pytest.skip(str(error))
    try:
        yield machine
    finally:
        machine.stop()
