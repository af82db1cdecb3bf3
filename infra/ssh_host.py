"""A machine over SSH: commands proven to have run, files that arrive whole, processes that outlive the connection."""

import base64
import hashlib
import secrets
import shlex
import shutil
import tarfile
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Self, TypeVar

from bench.errors import (
    LoginRefusedError,
    LostConnectionError,
    NotReadyError,
    RemoteCommandError,
    SilentHostError,
    TransferError,
    UnreachableHostError,
)
from infra.host import Access, Look, Ran, Say
from infra.ssh import CONNECT_TIMEOUT_S, Line
from infra.store import sha256

STEP_TIMEOUT_S = 60.0
TRANSFER_FLOOR_BYTES_PER_S = 200_000  # a step that moves a file may take so long beside STEP_TIMEOUT_S
PATIENCE_S = 120.0  # how long a step that may be repeated is repeated over lost connections
RETRY_S = 1.0
LOOK_BYTES = 1 << 18
SHOWN_CHARS = 80  # of a script, in an error
LAST_CHARS = 1500  # of a failed command's words

T = TypeVar("T")

# The child takes the pid file or leaves: two starts of one folder, after a lost answer say, make one process.
_DETACH = """mkdir -p {folder} && cd {folder} || exit 1
setsid sh -c 'folder=$1; environment=$2; shift 2
set -C; { echo $$ > pid; } 2>/dev/null || exit 0; set +C
cd "$HOME"; [ -z "$environment" ] || . "$environment"
"$@"; code=$?
echo $code > "$folder/exit.tmp" && mv "$folder/exit.tmp" "$folder/exit"' sh "$PWD" {words} >> log 2>&1 < /dev/null &
i=0; while [ ! -s pid ] && [ $i -lt 100 ]; do sleep 0.05; i=$((i+1)); done; [ -s pid ]"""
_LOOK = """cd {folder} 2>/dev/null || { echo gone; exit 0; }
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


class SshHost:
    """A machine over SSH. It connects when it is first asked, and again whenever the connection is gone."""

    def __init__(self, access: Access, *, patience_s: float = PATIENCE_S, connect_s: float = CONNECT_TIMEOUT_S) -> None:
        self.access = access
        self._patience_s = patience_s
        self._connect_s = connect_s
        self._line: Line | None = None

    def run(self, script: str, *, timeout_s: float = STEP_TIMEOUT_S, stdin: bytes = b"", say: Say | None = None) -> Ran:
        """Run a shell script to its end. Raises NotReadyError where something else was run in its place.

        A line that only the shell on the machine can put together stands for the script having run, with its exit
        code: sshd's own exit code is also 0 where a first boot answers everything with a sentence.
        """
        head, tail = secrets.token_hex(8), secrets.token_hex(8)
        whole = f"(\n{script}\n)\nprintf '\\n%s%s %d\\n' {head} {tail} $?"
        output = _Output(say)
        line = self._connected()
        with line.step(f"`{_short(script)}`", timeout_s):
            err = line.execute(f"sh -c {shlex.quote(whole)}", stdin, output.add)
        text = output.end()
        out, found, code = text.rpartition(f"\n{head}{tail} ")
        if not found:
            raise NotReadyError(
                f"{self.access} let us in and did not run what it was asked; it said {_last(text) or 'nothing'!r}"
            )
        return Ran(int(code), out, err.decode(errors="replace"))

    def ask(self, script: str, *, timeout_s: float = STEP_TIMEOUT_S) -> str:
        """The output of a script that may be repeated; raises RemoteCommandError in its own words where it fails."""
        return self._steadily(lambda: self._checked(script, timeout_s))

    def _checked(self, script: str, timeout_s: float = STEP_TIMEOUT_S, stdin: bytes = b"") -> str:
        ran = self.run(script, timeout_s=timeout_s, stdin=stdin)
        if ran.exit_code != 0:
            said = _last(ran.err) or _last(ran.out) or "it said nothing"
            raise RemoteCommandError(f"`{_short(script)}` on {self.access} ended with {ran.exit_code}: {said}")
        return ran.out

    def is_alive(self) -> bool:
        """Whether the machine runs a command now."""
        try:
            return self.run("true", timeout_s=self._connect_s).exit_code == 0
        except (UnreachableHostError, LostConnectionError, SilentHostError, NotReadyError):
            return False

    def close(self) -> None:
        """Hang up; the next call connects again."""
        if self._line is not None:
            self._line.close()
            self._line = None

    def with_patience(self, patience_s: float) -> Self:
        """The same machine, given up on sooner or later."""
        return type(self)(self.access, patience_s=patience_s, connect_s=min(self._connect_s, patience_s))

    def _connected(self) -> Line:
        if self._line is None or not self._line.is_open:
            self.close()
            self._line = Line(self.access, self._connect_s)
        return self._line

    def _steadily(self, step: Callable[[], T]) -> T:
        """Repeat a step over lost connections, until our patience is over; the last reason is raised then."""
        until = time.monotonic() + self._patience_s
        while True:
            try:
                return step()
            except (UnreachableHostError, LostConnectionError, SilentHostError, TransferError):
                if time.monotonic() + RETRY_S > until:
                    raise
                time.sleep(RETRY_S)

    def put(self, source: Path, target: str, *, mode: int = 0o644) -> None:
        """Put a file or a folder there, whole or not at all; an old one of that name is replaced. May be repeated."""
        if not source.is_dir():
            self._steadily(lambda: self._put_file(source, target, mode))
            return
        with tempfile.TemporaryDirectory(prefix="nightbench-put-") as name:
            archive = Path(name) / "folder.tar"
            with tarfile.open(archive, "w") as tar:
                tar.add(source, ".")
            self._steadily(lambda: self._put_file(archive, f"{target}.tar", mode))
        partial = shlex.quote(f"{target}.partial")
        self.ask(
            f"rm -rf {partial} && mkdir {partial} && tar -xf {shlex.quote(target)}.tar -C {partial} && "
            f"rm -rf {shlex.quote(target)} && mv -T {partial} {shlex.quote(target)} && rm -f {shlex.quote(target)}.tar",
            timeout_s=STEP_TIMEOUT_S + _bytes_below(source) / TRANSFER_FLOOR_BYTES_PER_S,
        )

    def _put_file(self, source: Path, target: str, mode: int) -> None:
        size, partial = source.stat().st_size, f"{target}.partial"
        self._checked(f"mkdir -p {shlex.quote(str(PurePosixPath(target).parent))}")
        line = self._connected()
        with line.step(f"putting {source.name} there", _transfer_s(size)):
            line.files().put(str(source), partial, confirm=False)
        self._demand_same(source, partial)
        self._checked(f"chmod {mode:o} {shlex.quote(partial)} && mv -T {shlex.quote(partial)} {shlex.quote(target)}")

    def get(self, source: str, target: Path) -> None:
        """Get a file or a folder from there, whole or not at all; where the name is taken here it is refused."""
        if target.exists():
            raise TransferError(f"{target} is already there; what comes from {self.access} does not replace it")
        target.parent.mkdir(parents=True, exist_ok=True)
        name, beside = shlex.quote(source), target.with_name(f".{target.name}.partial")
        kind = self.ask(f"if [ -d {name} ]; then echo folder; elif [ -e {name} ]; then echo file; else echo none; fi")
        try:
            if kind.strip() == "folder":
                self._get_folder(source, beside)
            elif kind.strip() == "file":
                self._steadily(lambda: self._get_file(source, beside))
            else:
                raise TransferError(f"there is no {source} on {self.access}")
            beside.rename(target)
        finally:
            shutil.rmtree(beside) if beside.is_dir() else beside.unlink(missing_ok=True)

    def _get_folder(self, source: str, target: Path) -> None:
        archive = f"{source}.tar.partial"
        local = target.with_name(f"{target.name}.tar")
        try:
            self.ask(f"tar -cf {shlex.quote(archive)} -C {shlex.quote(source)} .", timeout_s=10 * STEP_TIMEOUT_S)
            self._steadily(lambda: self._get_file(archive, local))
            with tarfile.open(local) as tar:
                tar.extractall(target, filter="data")
        finally:
            local.unlink(missing_ok=True)
        self.ask(f"rm -f {shlex.quote(archive)}")

    def _get_file(self, source: str, target: Path) -> None:
        size = int(self._checked(f"stat -c %s {shlex.quote(source)}"))
        line = self._connected()
        with line.step(f"getting {source}", _transfer_s(size)):
            line.files().get(source, str(target))
        self._demand_same(target, source)

    def _demand_same(self, here: Path, there: str) -> None:
        """Raise TransferError where size or SHA-256 of the two differ."""
        size = here.stat().st_size
        said = self._checked(f"stat -c %s {shlex.quote(there)} && sha256sum < {shlex.quote(there)}", _transfer_s(size))
        if said.split()[:2] != [str(size), sha256(here)]:
            raise TransferError(f"{there} on {self.access} and {here} are not the same after they were moved")

    def put_secret_environment(self, values: Mapping[str, str], target: str) -> None:
        """Write a file for a shell to read, mode 600 from its first byte; the values travel as a command's input."""
        text = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in values.items()).encode()
        name, partial = shlex.quote(target), shlex.quote(f"{target}.partial")
        folder = shlex.quote(str(PurePosixPath(target).parent))
        script = f"umask 077 && mkdir -p {folder} && rm -f {partial} && cat > {partial} && sha256sum < {partial}"
        said = self._steadily(lambda: self._checked(script, stdin=text))
        if said.split()[:1] != [hashlib.sha256(text).hexdigest()]:
            raise TransferError(f"{target} did not arrive on {self.access} as it was sent")
        self.ask(f"mv -T {partial} {name} || [ -e {name} ]")

    def start_detached(self, argv: Sequence[str], folder: str, *, environment_file: str | None = None) -> None:
        """Start a program that outlives the connection; where the folder has a pid already, nothing is started."""
        words = shlex.join([environment_file or "", *argv])
        self.ask(_DETACH.replace("{folder}", shlex.quote(folder)).replace("{words}", words))

    def look(self, folder: str, log_from: int = 0) -> Look:
        """Say what the program of this folder is doing, and what it logged from this byte on."""
        script = _LOOK.replace("{folder}", shlex.quote(folder)).replace("{first}", str(log_from + 1))
        return _read_look(self.ask(script.replace("{count}", str(LOOK_BYTES))))

    def end_detached(self, folder: str, patience_s: float = 15.0) -> None:
        """End the program of this folder with its whole process group; one that has ended is no error."""
        script = _END.replace("{folder}", shlex.quote(folder)).replace("{tenths}", str(round(patience_s * 10)))
        self.ask(script, timeout_s=STEP_TIMEOUT_S + patience_s)


def wait_until_ready(host: SshHost, patience_s: float, is_booted: str = "true") -> None:
    """Wait until a machine runs what it is asked and, where a command tells that its first boot is over, that does.

    A key may be put in place late, so that being refused is believed only after `patience_s`; the last reason is raised
    then. A wrong host key is believed at once: HostKeyError.
    """
    until = time.monotonic() + patience_s
    while True:
        try:
            _require_ready(host, is_booted)
        except (UnreachableHostError, LoginRefusedError, NotReadyError, LostConnectionError, SilentHostError):
            host.close()
            if time.monotonic() > until:
                raise
        else:
            return
        time.sleep(RETRY_S)


def _require_ready(host: SshHost, is_booted: str) -> None:
    if host.run(is_booted).exit_code != 0:
        raise NotReadyError(f"the first boot of {host.access} is not over: `{is_booted}` fails there")


class _Output:
    """What a command prints, passed on line by line and kept; the sentinel's line is passed on to nobody."""

    def __init__(self, say: Say | None) -> None:
        self._say = say
        self._kept: list[bytes] = []
        self._open = b""

    def add(self, chunk: bytes) -> None:
        self._kept.append(chunk)
        if self._say is None:
            return
        *lines, self._open = (self._open + chunk).split(b"\n")
        for line in lines:
            if line:
                self._say(line.decode(errors="replace"))

    def end(self) -> str:
        return b"".join(self._kept).decode(errors="replace")


def _read_look(text: str) -> Look:
    head, _, log = text.partition("\n")
    state, _, code = head.partition(" ")
    logged = base64.b64decode(log)
    if state == "ended":
        return Look("ended", int(code), logged)
    return Look("running" if state == "running" else "gone", None, logged)


def _transfer_s(size: int) -> float:
    """How long moving so many bytes may take."""
    return STEP_TIMEOUT_S + size / TRANSFER_FLOOR_BYTES_PER_S


def _bytes_below(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _last(text: str) -> str:
    return text.strip()[-LAST_CHARS:]


def _short(script: str) -> str:
    line = script.strip().splitlines()[0]
    return line if len(line) <= SHOWN_CHARS else line[: SHOWN_CHARS - 3] + "..."
