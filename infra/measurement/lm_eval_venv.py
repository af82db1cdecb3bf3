"""The harness's own environment, built where a suite asks for its tasks: beside the engine's, once for each lock."""

import hashlib
import shutil
import sys
from pathlib import Path

from infra.engines.venv import MARKER, Programs, demand_free_space, find_uv, lock_bytes, mark_complete
from infra.processes.file_lock import exclusive_lock
from infra.reporting import Say
from infra.settings import Settings

LOCK = Path(__file__).resolve().parents[2] / "requirements" / "lm_eval.lock.txt"
FREE_BYTES_NEEDED = 2 * 1024**3  # 0.7 GB installed, and the wheels that uv unpacks beside it
_VERSION = "import importlib.metadata as found; print(found.version('lm_eval'))"


def ready_lm_eval(settings: Settings, say: Say) -> Path:
    """The harness's command: the one that the settings name, else that of our own environment, built if need be.

    Raises EngineBuildError or NoSpaceError where it cannot be built; a build that died is started over.
    """
    if settings.lm_eval is not None:
        return settings.lm_eval.absolute()
    return ensure_lm_eval(LOCK, settings.cache, say)


def ensure_lm_eval(lock: Path, cache: Path, say: Say) -> Path:
    """Build the environment that this lock describes, or find it built; two callers at once build one."""
    lock_sha256 = hashlib.sha256(lock_bytes(lock)).hexdigest()
    python_tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    folder = cache.absolute() / "engines" / f"lm-eval-{lock_sha256[:16]}-{python_tag}"
    command = folder / "bin" / "lm-eval"
    if (folder / MARKER).exists():
        return command
    folder.parent.mkdir(parents=True, exist_ok=True)
    with exclusive_lock(folder.with_name(folder.name + ".lock"), say, "building the environment of lm-eval") as held:
        if not (folder / MARKER).exists():
            version = _build(folder, lock, Programs(held, say))
            mark_complete(folder, {"lock_sha256": lock_sha256, "lm_eval_version": version})
    return command


def _build(folder: Path, lock: Path, programs: Programs) -> str:
    """Build it from nothing and return the harness's version."""
    shutil.rmtree(folder, ignore_errors=True)
    demand_free_space(folder.parent, FREE_BYTES_NEEDED, "lm-eval")
    uv, python = find_uv(), str(folder / "bin" / "python")
    programs.say(f"building the environment of lm-eval {folder} (0.7 GB, some minutes the first time)")
    programs.run([uv, "venv", "--python", sys.executable, str(folder)])
    # Byte code of what is imported is made on the first import; that of all 10,000 files takes longer than a task.
    programs.run([uv, "pip", "install", "--python", python, "--require-hashes", "--no-deps", "-r", str(lock)])
    return programs.run([python, "-c", _VERSION])
