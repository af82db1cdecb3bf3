"""The virtual environments of lm-evaluation-harness and of bfcl-eval, each built once for its lock file."""

import hashlib
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from infra.engines.venv import MARKER, Programs, find_uv, lock_bytes, mark_complete, require_free_space
from infra.measurement import bfcl_program
from infra.processes.file_lock import exclusive_lock
from infra.reporting import Say
from infra.settings import Settings

REQUIREMENTS = Path(__file__).resolve().parents[2] / "requirements"
FREE_BYTES_NEEDED = 2 * 1024**3  # 0.7 GB installed, and the wheels that uv unpacks beside it
_VERSION = "import importlib.metadata as found; print(found.version('{package}'))"


@dataclass(frozen=True)
class Harness:
    """A program with questions for a server, and the lock file of its environment."""

    name: str
    package: str
    lock: Path
    gigabytes: float


LM_EVAL = Harness("lm-eval", "lm_eval", REQUIREMENTS / "lm_eval.lock.txt", 0.7)
BFCL = Harness("bfcl", "bfcl-eval", REQUIREMENTS / "bfcl.lock.txt", 0.4)


def is_bfcl(task: str) -> bool:
    """Whether a task is a category of BFCL."""
    return task.startswith(bfcl_program.PREFIX)


def ready_harness(settings: Settings, task: str, say: Say) -> tuple[str, ...]:
    """The command that runs a task: of the settings, else of our own environment, which is built if it is missing.

    Raises EngineBuildError or NoSpaceError if the build fails; an interrupted build is started over.
    """
    if is_bfcl(task):
        python = ensure_harness(BFCL, settings.cache, say) / "python"
        return (str(python), "-P", str(Path(bfcl_program.__file__).resolve()))
    if settings.lm_eval is not None:
        return (str(settings.lm_eval.absolute()),)
    return (str(ensure_harness(LM_EVAL, settings.cache, say) / "lm-eval"),)


def ensure_harness(harness: Harness, cache: Path, say: Say) -> Path:
    """The folder of programs in the environment of this lock file, built if missing; two callers build it once."""
    lock_sha256 = hashlib.sha256(lock_bytes(harness.lock)).hexdigest()
    python_tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    folder = cache.absolute() / "engines" / f"{harness.name}-{lock_sha256[:16]}-{python_tag}"
    if (folder / MARKER).exists():
        return folder / "bin"
    folder.parent.mkdir(parents=True, exist_ok=True)
    what = f"building the {harness.name} environment"
    with exclusive_lock(folder.with_name(folder.name + ".lock"), say, what) as held:
        if not (folder / MARKER).exists():
            version = _build(folder, harness, Programs(held, say))
            mark_complete(folder, {"lock_sha256": lock_sha256, f"{harness.package}_version": version})
    return folder / "bin"


def _build(folder: Path, harness: Harness, programs: Programs) -> str:
    """Build the environment in an empty folder and return the version of the harness."""
    shutil.rmtree(folder, ignore_errors=True)
    require_free_space(folder.parent, FREE_BYTES_NEEDED, harness.name)
    uv, python = find_uv(), str(folder / "bin" / "python")
    programs.say(f"building the {harness.name} environment {folder} ({harness.gigabytes:g} GB, a few minutes)")
    programs.run([uv, "venv", "--python", sys.executable, str(folder)])
    # No --compile-bytecode: for all 10,000 files it takes longer than a task; an import compiles what it needs.
    programs.run([uv, "pip", "install", "--python", python, "--require-hashes", "--no-deps", "-r", str(harness.lock)])
    return programs.run([python, "-P", "-c", _VERSION.format(package=harness.package)])
