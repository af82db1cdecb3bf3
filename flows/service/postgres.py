"""PostgreSQL as the database of Prefect's server: the distribution's own programs, with their data in the data folder.

It listens on a socket in that folder, which only its user may enter, and on no port. PostgreSQL does not run as root;
for root it runs as the user that its package has made.
"""

import os
import pwd
import shutil
import subprocess
from pathlib import Path
from urllib.parse import quote

import psutil

from bench.errors import ServerStartError, UsageError
from infra.processes.environment import child_environment
from infra.reporting import Say
from nights.durable import rename

OWN_USER = "postgres"  # of the distribution's package
ROLE, PORT = "prefect", 5432  # the port only names the socket
SOCKET_MAX = 107  # bytes of a socket's path
MAKE_S = 120.0
LAST_LINES = 3
PACKAGES = Path("/usr/lib/postgresql")  # of Debian and its like, which put no server on PATH


def is_made(folder: Path) -> bool:
    """Whether a database was made in this folder."""
    return _version_file(folder).exists()


def is_ready(folder: Path) -> bool:
    """Whether the server of this folder takes connections; it writes so into its pid file, as pg_ctl reads it.

    One that was killed leaves the file.
    """
    try:
        lines = (folder / "postmaster.pid").read_text("utf-8").splitlines()
    except OSError:
        return False
    is_stated = len(lines) > 7 and lines[7].strip() == "ready"  # noqa: PLR2004 - the eighth line
    return is_stated and lines[0].strip().isdigit() and psutil.pid_exists(int(lines[0]))


def url(folder: Path) -> str:
    """The address of the database, as Prefect's server takes it."""
    return f"postgresql+asyncpg://{ROLE}@/postgres?host={quote(str(folder))}"


def argv(folder: Path) -> tuple[str, ...]:
    """The command line of the server of this folder."""
    own = ("-c", "listen_addresses=", "-c", "unix_socket_permissions=0700", "-p", str(PORT), "-k", str(folder))
    return (*_as_own_user(), str(_program("postgres", folder)), "-D", str(folder), *own)


def make(folder: Path, say: Say) -> None:
    """Make the database of this folder, unless it is made.

    Raises UsageError where there is no PostgreSQL, or its user cannot use the folder.
    """
    if is_made(folder):
        return
    program = _program("initdb", folder)
    if len(os.fsencode(folder)) + len(f"/.s.PGSQL.{PORT}") > SOCKET_MAX:
        raise UsageError(f"{folder} is too long for PostgreSQL's socket: choose a data folder with a shorter path")
    say("making the database of PostgreSQL")
    beside = folder.with_name(f"{folder.name}.unfinished")  # initdb writes PG_VERSION first, and may be killed
    for left in (folder, beside):
        shutil.rmtree(left, ignore_errors=True)  # what an interrupted start left, which initdb refuses
    beside.mkdir(mode=0o700, parents=True)
    if os.geteuid() == 0:
        own = pwd.getpwnam(OWN_USER)
        os.chown(beside, own.pw_uid, own.pw_gid)
    made = _run_initdb(program, beside)
    if made.returncode:
        shutil.rmtree(beside, ignore_errors=True)
        why = " ".join(made.stderr.strip().splitlines()[-LAST_LINES:])
        raise ServerStartError(
            f"{program} failed in {folder}: {why}; its user must be able to enter each folder of this path"
        )
    rename(beside, folder)


def _run_initdb(program: Path, folder: Path) -> "subprocess.CompletedProcess[str]":
    options = ("-D", str(folder), "-U", ROLE, "--auth=trust", "--encoding=UTF8", "--no-locale")
    return subprocess.run(
        [*_as_own_user(), str(program), *options],
        env=child_environment(),
        cwd="/",
        capture_output=True,
        text=True,
        timeout=MAKE_S,
        check=False,
    )


def _program(name: str, folder: Path) -> Path:
    """A program of the version that made the folder, else the newest that is installed."""
    version = _version_file(folder).read_text("utf-8").strip() if is_made(folder) else "*"
    installed = sorted(PACKAGES.glob(f"{version}/bin/{name}"), key=lambda path: float(path.parts[-3]))
    on_path = shutil.which(name)
    if installed or on_path:
        return installed[-1] if installed else Path(str(on_path))
    raise UsageError(
        f"there is no {name} of PostgreSQL{'' if version == '*' else f' {version}'} on PATH or in {PACKAGES}: install "
        "the package postgresql, or set NIGHTBENCH_DATABASE_URL to a server of yours"
    )


def _as_own_user() -> tuple[str, ...]:
    if os.geteuid() != 0:
        return ()
    try:
        pwd.getpwnam(OWN_USER)
    except KeyError as error:
        raise UsageError(
            f"PostgreSQL does not run as root, and there is no user {OWN_USER}: run nightbench as a user of its own"
        ) from error
    return "setpriv", f"--reuid={OWN_USER}", f"--regid={OWN_USER}", "--init-groups", "--"


def _version_file(folder: Path) -> Path:
    return folder / "PG_VERSION"
