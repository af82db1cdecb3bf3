"""The virtual environment of lm-evaluation-harness, built once for each lock file, beside the engine's."""

import hashlib
import shutil
import sys
from pathlib import Path

from infra.engines.venv import MARKER, Programs, find_uv, lock_bytes, mark_complete, require_free_space
from infra.processes.file_lock import exclusive_lock
from infra.reporting import Say
from infra.settings import Settings

LOCK = Path(__file__).resolve().parents[2] / "requirements" / "lm_eval.lock.txt"
FREE_BYTES_NEEDED = 2 * 1024**3  # 0.7 GB installed, and the wheels that uv unpacks beside it
_VERSION = "import importlib.metadata as found; print(found.version('lm_eval'))"


def ready_lm_eval(settings: Settings, say: Say) -> Path:
    """The path of `lm-eval`: from the settings, else from our own environment, which is built if it is missing.

    Raises EngineBuildError or NoSpaceError if the build fails; an interrupted build is started over.
    """
    if settings.lm_eval is not None:
        return settings.lm_eval.absolute()
    return ensure_lm_eval(LOCK, settings.cache, say)


def ensure_lm_eval(lock: Path, cache: Path, say: Say) -> Path:
    """The path of `lm-eval` in the environment of this lock file, built if missing; two callers build it once."""
    lock_sha256 = hashlib.sha256(lock_bytes(lock)).hexdigest()
    python_tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    folder = cache.absolute() / "engines" / f"lm-eval-{lock_sha256[:16]}-{python_tag}"
    command = folder / "bin" / "lm-eval"
    if (folder / MARKER).exists():
        return command
    folder.parent.mkdir(parents=True, exist_ok=True)
    with exclusive_lock(folder.with_name(folder.name + ".lock"), say, "building the lm-eval environment") as held:
        if not (folder / MARKER).exists():
            version = _build(folder, lock, Programs(held, say))
            mark_complete(folder, {"lock_sha256": lock_sha256, "lm_eval_version": version})
    return command


def _build(folder: Path, lock: Path, programs: Programs) -> str:
    """Build the environment in an empty folder and return the version of lm-eval."""
    shutil.rmtree(folder, ignore_errors=True)
    require_free_space(folder.parent, FREE_BYTES_NEEDED, "lm-eval")
    uv, python = find_uv(), str(folder / "bin" / "python")
    programs.say(f"building the lm-eval environment {folder} (0.7 GB, a few minutes)")
    programs.run([uv, "venv", "--python", sys.executable, str(folder)])
    # No --compile-bytecode: for all 10,000 files it takes longer than a task; an import compiles what it needs.
    programs.run([uv, "pip", "install", "--python", python, "--require-hashes", "--no-deps", "-r", str(lock)])
    return programs.run([python, "-P", "-c", _VERSION])
