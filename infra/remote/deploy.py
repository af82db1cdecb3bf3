"""Copy the measuring code to a machine, into a folder named by its hash, and build a Python environment for it."""

import gzip
import hashlib
import io
import shlex
import tarfile
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.errors import EnvironmentOnMachineError, RemoteCommandError
from infra.clock import Clock, poll
from infra.processes.environment import SYSTEM_BUNDLES
from infra.remote.host import Host, JobStatus
from infra.reporting import Say

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("bench", "catalog", "infra", "meter", "nights")
LOCKS = ("bootstrap.lock.txt", "machine.lock.txt", "engine.lock.txt")
ENGINE_LOCKS = "requirements/engines"  # of other releases than engine.lock.txt's
TASK_LOCKS = ("lm_eval.lock.txt", "bfcl.lock.txt")  # environments of their own, where a suite needs them
HOME = "nightbench"  # the folder, in the user's home, of everything that we put on a machine
INSTALL_PATIENCE_S = 1800.0
CHECK_TIMEOUT_S = 120.0
POLL_S = 1.0

# The lock files have hashes for these Pythons; a name without a version comes last, since it may be any.
_INSTALL = """
set -e
cd /  # a module in the home folder must not run in place of the tools below
venv=$HOME/{venv} requirements=$HOME/{code}/requirements
rm -rf "$venv"
for name in python3.12 python3.11 python3.13 python3; do
  found=$(command -v "$name") || continue
  "$found" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' && break
  found=
done
[ -n "$found" ] || {{ echo "no Python 3.11, 3.12 or 3.13 found on this machine: install one"; exit 1; }}
"$found" -m venv "$venv" || {{ echo "$found cannot create a virtual environment: install python3-venv"; exit 1; }}
for bundle in {bundles}; do  # with the authority of a company, which uv's own list lacks
  if [ -s "$bundle" ]; then export UV_SYSTEM_CERTS="${{UV_SYSTEM_CERTS:-true}}"; fi
done
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r "$requirements/{bootstrap}"
"$venv/bin/uv" pip install --python "$venv/bin/python" --compile-bytecode --require-hashes -r "$requirements/{machine}"
touch "$venv/.complete"
"""
# The version first, since an older Python does not know -P, which leaves out the home folder.
_HAS_VERSION = "import sys; sys.exit(sys.version_info < (3, 11) and 'it is older than Python 3.11')"
_NEEDED = "import huggingface_hub, numpy, prometheus_client, psutil, pyarrow, pydantic, pydantic_settings"


@dataclass(frozen=True)
class DeployedCode:
    """Where the code is on a machine and the interpreter that runs it, both quoted for a shell."""

    code: str
    python: str


def deploy(host: Host, python: str | None, say: Say, clock: Clock) -> DeployedCode:
    """Deploy code and environment on a machine, unless they are there already; a repetition costs one command.

    `python` names an interpreter there that has all packages. Raises EnvironmentOnMachineError with the installer's
    output where the environment cannot be built.
    """
    archive = make_archive()
    code = f"{HOME}/code/{hashlib.sha256(archive).hexdigest()[:16]}"
    _put_code(host, archive, code, say)
    if python is not None:
        _require_python(host, python)
        return DeployedCode(code, python)
    venv = f"{HOME}/venv/{hashlib.sha256(_locks()).hexdigest()[:16]}"
    if not _is_there(host, f"{venv}/.complete"):
        _install(host, code, venv, say, clock)
    return DeployedCode(code, f"{venv}/bin/python")


def make_archive() -> bytes:
    """The measuring code as a compressed tar file: the same bytes for the same code."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as tar:
        for path in _files():
            entry = tarfile.TarInfo(str(path.relative_to(ROOT)))
            content = path.read_bytes()
            entry.size, entry.mode = len(content), 0o644
            tar.addfile(entry, io.BytesIO(content))
    return gzip.compress(plain.getvalue(), mtime=0)


def _files() -> Iterator[Path]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path
    yield from (ROOT / "requirements" / lock for lock in (*LOCKS, *TASK_LOCKS))
    yield from sorted((ROOT / ENGINE_LOCKS).glob("*.lock.txt"))


def lock_hashes(*, has_lm_eval: bool) -> dict[str, str]:
    """The SHA-256 of each lock file that an environment on a machine is built from, by its name."""
    locks = (*LOCKS, *TASK_LOCKS) if has_lm_eval else LOCKS
    return {lock: hashlib.sha256((ROOT / "requirements" / lock).read_bytes()).hexdigest() for lock in locks}


def _locks() -> bytes:
    return b"".join((ROOT / "requirements" / lock).read_bytes() for lock in LOCKS[:2])


def _is_there(host: Host, path: str) -> bool:
    return host.output_of(f"if [ -e {shlex.quote(path)} ]; then echo yes; fi").strip() == "yes"


def _put_code(host: Host, archive: bytes, code: str, say: Say) -> None:
    if _is_there(host, code):
        return
    say(f"copying the measuring code ({len(archive) / 1e3:.0f} kB) to {host.access}")
    with tempfile.NamedTemporaryFile(suffix=".tar.gz") as file:
        file.write(archive)
        file.flush()
        host.put(Path(file.name), f"{code}.tar.gz")
    host.output_of(
        f"rm -rf {code}.unpacked && mkdir {code}.unpacked && tar -xzf {code}.tar.gz -C {code}.unpacked && "
        f"{{ mv -T {code}.unpacked {code} || [ -d {code} ]; }} && rm -f {code}.tar.gz"
    )


def _require_python(host: Host, python: str) -> None:
    try:
        name = shlex.quote(python)
        check = f"{name} -c {shlex.quote(_HAS_VERSION)} && {name} -P -c {shlex.quote(_NEEDED)}"
        host.output_of(check, timeout_s=CHECK_TIMEOUT_S)
    except RemoteCommandError as error:
        raise EnvironmentOnMachineError(
            f"{python} on {host.access} (NIGHTBENCH_MACHINE_PYTHON) lacks a package of the measuring code, "
            f"or is too old for it: {error}"
        ) from error


def _install(host: Host, code: str, venv: str, say: Say, clock: Clock) -> None:
    """Build the environment in a process that survives a lost connection."""
    say(f"building the environment of the measuring code on {host.access}")
    bundles = " ".join(SYSTEM_BUNDLES)
    script = _INSTALL.format(venv=venv, code=code, bundles=bundles, bootstrap=LOCKS[0], machine=LOCKS[1])
    folder = f"{HOME}/install-{uuid.uuid4().hex[:12]}"
    host.start_detached(["sh", "-c", script], folder)
    log = bytearray()

    def ended() -> JobStatus | None:
        status = host.job_status(folder, len(log))
        log.extend(status.log)
        return None if status.state == "running" else status

    status = poll(clock, POLL_S, ended, INSTALL_PATIENCE_S)
    host.end_detached(folder)
    if status is None or (status.state, status.exit_code) != ("ended", 0):
        ending = f"it was still running after {INSTALL_PATIENCE_S:g} s" if status is None else status.state
        raise EnvironmentOnMachineError(
            f"the environment of the measuring code cannot be built on {host.access}: "
            f"{log.decode(errors='replace').strip()[-1500:] or ending}"
        )
    host.output_of(f"rm -rf {shlex.quote(folder)}")
