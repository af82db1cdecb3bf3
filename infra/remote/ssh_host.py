"""A machine over SSH: file transfers that are complete or undone, and processes that survive the connection."""

import base64
import hashlib
import shlex
import shutil
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from bench.errors import TransferError
from infra.remote.host import JobStatus
from infra.remote.offered import FORMAT, Splitter, offered_files
from infra.remote.ssh_connection import LongOutputError
from infra.remote.ssh_shell import STEP_TIMEOUT_S, SshShell
from infra.storage.accepted import RUN_LIMITS, Limits
from infra.storage.store import sha256
from nights.durable import make_folder, move_into_place

TRANSFER_FLOOR_BYTES_PER_S = 200_000  # the slowest transfer that is waited for, after STEP_TIMEOUT_S
LOG_BYTES = 1 << 18

# The child creates the pid file or exits: two starts in one folder, after a lost reply say, result in one process.
_DETACH = """mkdir -p {folder} && cd {folder} || exit 1
setsid sh -c 'folder=$1; environment=$2; shift 2
set -C; { echo $$ > pid; } 2>/dev/null || exit 0; set +C
cd "$HOME"; [ -z "$environment" ] || . "$environment"
"$@"; code=$?
echo $code > "$folder/exit.tmp" && mv "$folder/exit.tmp" "$folder/exit"' sh "$PWD" {words} >> log 2>&1 < /dev/null &
i=0; while [ ! -s pid ] && [ $i -lt 100 ]; do sleep 0.05; i=$((i+1)); done; [ -s pid ]"""
_STATUS = """cd {folder} 2>/dev/null || { echo gone; exit 0; }
if [ -s exit ]; then echo "ended $(cat exit)"
elif [ -s pid ] && kill -0 "-$(cat pid)" 2>/dev/null; then echo running
elif [ -s exit ]; then echo "ended $(cat exit)"
else echo gone; fi
tail -c +{first} log 2>/dev/null | head -c {count} | base64"""
_END = """cd {folder} 2>/dev/null && [ -s pid ] || exit 0
pid=$(cat pid)
kill -TERM "-$pid" 2>/dev/null || exit 0
i=0; while kill -0 "-$pid" 2>/dev/null && [ $i -lt {tenths} ]; do sleep 0.1; i=$((i+1)); done
kill -KILL "-$pid" 2>/dev/null; exit 0"""


class SshHost(SshShell):
    """A machine over SSH, which implements infra.remote.host.Host."""

    def put(self, source: Path, target: str, *, mode: int = 0o644) -> None:
        """Upload a file or a folder, completely or not at all; one of that name is replaced. May be repeated."""
        if not source.is_dir():
            self._with_retries(lambda: self._put_file(source, target, mode))
            return
        with tempfile.TemporaryDirectory(prefix="nightbench-put-") as name:
            archive = Path(name) / "folder.tar"
            with tarfile.open(archive, "w") as tar:
                tar.add(source, ".")
            self._with_retries(lambda: self._put_file(archive, f"{target}.tar", mode))
        partial = shlex.quote(f"{target}.partial")
        self.output_of(
            f"rm -rf {partial} && mkdir {partial} && tar -xf {shlex.quote(target)}.tar -C {partial} && "
            f"rm -rf {shlex.quote(target)} && mv -T {partial} {shlex.quote(target)} && rm -f {shlex.quote(target)}.tar",
            timeout_s=STEP_TIMEOUT_S + _bytes_below(source) / TRANSFER_FLOOR_BYTES_PER_S,
        )

    def _put_file(self, source: Path, target: str, mode: int) -> None:
        size, partial = source.stat().st_size, f"{target}.partial"
        name, folder = shlex.quote(partial), shlex.quote(str(PurePosixPath(target).parent))
        self._checked(
            f"mkdir -p {folder} && rm -f {name} && umask 077 && : > {name}"
        )  # no other user reads any part of it
        line = self._connected()
        with line.step(f"the upload of {source.name}", _transfer_s(size)):
            line.put(source, partial)
        self._demand_same(source, partial)
        self._checked(f"chmod {mode:o} {name} && mv -T {name} {shlex.quote(target)}")

    def get(self, source: str, target: Path, limits: Limits = RUN_LIMITS) -> None:
        """Download a file or a folder, completely or not at all; TransferError where the target exists already.

        It is on disk here when this returns.

        RefusedFileError for a link, a special file, a name with a doubtful character, or more than `limits`.
        """
        if target.exists():
            raise TransferError(f"{target} exists already; {source} of {self.access} was not downloaded over it")
        make_folder(target.parent)
        name, beside = shlex.quote(source), target.with_name(f".{target.name}.partial")
        if not self.output_of(f"if [ -e {name} ] || [ -L {name} ]; then echo here; fi").strip():
            raise TransferError(f"{source} does not exist on {self.access}")
        try:
            self._with_retries(lambda: self._get(source, beside, limits))
            move_into_place(beside, target)
        finally:
            _remove(beside)

    def _get(self, source: str, target: Path, limits: Limits) -> None:
        """Download what the machine lists now, as one stream of the listed files."""
        _remove(target)
        listed = self._checked(f"find {shlex.quote(source)} -printf '{FORMAT}'")
        folders, sizes = offered_files(listed, limits, f"{self.access}:{source}")
        for name in folders:
            (target / name).mkdir(parents=True, exist_ok=True)
        for name in sizes:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            (target / name).touch()
        splitter, total_s = Splitter(target, sizes), _transfer_s(sum(sizes.values()))
        paths = "".join(f"{PurePosixPath(source) / name}\0" for name in sizes).encode()
        line = self._connected()
        with line.step(f"the download of {source}", total_s):
            try:
                line.execute("xargs -0 -r cat --", paths, splitter.add, most_bytes=sum(sizes.values()))
            except LongOutputError as error:  # a log has grown since it was listed: it is listed and tried again
                raise TransferError(f"the download of {source} failed on {self.access}: {error}") from error
        there = self._checked("xargs -0 -r cat -- | sha256sum", total_s, stdin=paths)
        if not splitter.is_complete(there.split()[0]):
            raise TransferError(f"size or SHA-256 mismatch after the transfer: {source} on {self.access} and {target}")

    def _demand_same(self, here: Path, there: str) -> None:
        """Raise TransferError where size or SHA-256 of the two differ."""
        size = here.stat().st_size
        output = self._checked(
            f"stat -c %s {shlex.quote(there)} && sha256sum < {shlex.quote(there)}", _transfer_s(size)
        )
        if output.split()[:2] != [str(size), sha256(here)]:
            raise TransferError(f"size or SHA-256 mismatch after the transfer: {there} on {self.access} and {here}")

    def put_secret_environment(self, values: Mapping[str, str], target: str) -> None:
        """Write a file for a shell to source, mode 600 from its first byte; the values are sent as stdin."""
        text = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in values.items()).encode()
        name, partial = shlex.quote(target), shlex.quote(f"{target}.partial")
        folder = shlex.quote(str(PurePosixPath(target).parent))
        script = f"umask 077 && mkdir -p {folder} && rm -f {partial} && cat > {partial} && sha256sum < {partial}"
        output = self._with_retries(lambda: self._checked(script, stdin=text))
        if output.split()[:1] != [hashlib.sha256(text).hexdigest()]:
            raise TransferError(f"SHA-256 mismatch after the transfer: {target} on {self.access}")
        self.output_of(f"mv -T {partial} {name} || [ -e {name} ]")

    def start_detached(self, argv: Sequence[str], folder: str, *, environment_file: str | None = None) -> None:
        """Start a program that survives the connection; where the folder has a pid file already, nothing is started."""
        words = shlex.join([environment_file or "", *argv])
        self.output_of(_DETACH.replace("{folder}", shlex.quote(folder)).replace("{words}", words))

    def job_status(self, folder: str, log_from: int = 0) -> JobStatus:
        """The state of the program of this folder, and its log from this byte on."""
        script = _STATUS.replace("{folder}", shlex.quote(folder)).replace("{first}", str(log_from + 1))
        return _read_status(self.output_of(script.replace("{count}", str(LOG_BYTES))))

    def end_detached(self, folder: str, patience_s: float = 15.0) -> None:
        """End the program of this folder with its whole process group; does nothing if it has ended."""
        script = _END.replace("{folder}", shlex.quote(folder)).replace("{tenths}", str(round(patience_s * 10)))
        self.output_of(script, timeout_s=STEP_TIMEOUT_S + patience_s)


def _read_status(text: str) -> JobStatus:
    head, _, log = text.partition("\n")
    state, _, code = head.partition(" ")
    logged = base64.b64decode(log)
    if state == "ended":
        return JobStatus("ended", int(code), logged)
    return JobStatus("running" if state == "running" else "gone", None, logged)


def _transfer_s(size: int) -> float:
    """How long the transfer of so many bytes may take."""
    return STEP_TIMEOUT_S + size / TRANSFER_FLOOR_BYTES_PER_S


def _remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def _bytes_below(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
