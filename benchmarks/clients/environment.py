"""A client's own place under the cache folder, filled whole or not at all."""

import fcntl
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.clients.client import UnavailableError
from infra.reporting import Say

PATIENCE_S = 900.0
LAST_CHARACTERS = 400  # of what a failed installer said
# The newest torch for which pip finds a CPU build where only releases are looked for; any torch serves a load client.
TORCH = "torch==2.13.0"


def ensure_folder(place: Path, fill: Callable[[Path], None]) -> Path:
    """Fill a folder beside its final place and rename it; what is already there is taken as it is.

    Two callers at once fill it once: the second waits. What a killed one left is wiped by the next.
    """
    place.parent.mkdir(parents=True, exist_ok=True)
    beside = place.with_name(f".{place.name}.unfinished")
    with place.with_name(f".{place.name}.lock").open("w", encoding="utf-8") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not place.exists():
            shutil.rmtree(beside, ignore_errors=True)
            beside.mkdir()
            fill(beside)
            beside.rename(place)
    return place


def ensure_environment(name: str, installs: Sequence[Sequence[str]], cache: Path, say: Say) -> Path:
    """Give the Python of a virtual environment into which pip put these, one call after another.

    Its programs are started with `-m`: their scripts name the folder in which they were made.
    """

    def fill(folder: Path) -> None:
        say(f"installing {name}")
        run_installer([sys.executable, "-m", "venv", str(folder)])
        for install in installs:
            run_installer([str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", *install])

    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    return ensure_folder(cache / "peers" / f"{name}-{tag}", fill) / "bin" / "python"


def run_installer(argv: list[str]) -> None:
    """Run a step of an installation to its end; raises UnavailableError with its last words."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    except subprocess.TimeoutExpired as error:
        raise UnavailableError(f"`{' '.join(argv[1:])}` took longer than {PATIENCE_S:.0f} s") from error
    if done.returncode != 0:
        raise UnavailableError(f"`{' '.join(argv[1:])}` failed: {done.stderr.strip()[-LAST_CHARACTERS:]}")
