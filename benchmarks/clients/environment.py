"""A client's own folder in the cache, installed completely or not at all."""

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.errors import EngineBuildError
from benchmarks.clients.client import UnavailableError
from infra.engines.venv import find_uv, torch_source
from infra.reporting import Say

PATIENCE_S = 900.0
LAST_CHARACTERS = 400  # of a failed installer's output
# The newest release of torch with a CPU build; a load client works with any torch.
TORCH = "torch==2.13.0"


def ensure_folder(place: Path, fill: Callable[[Path], None]) -> Path:
    """Fill a temporary folder and rename it to its final path; an existing folder is used as it is.

    Of two callers the second waits. The next caller removes what a killed one left.
    """
    place.parent.mkdir(parents=True, exist_ok=True)
    partial = place.with_name(f".{place.name}.unfinished")
    with place.with_name(f".{place.name}.lock").open("w", encoding="utf-8") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not place.exists():
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir()
            fill(partial)
            partial.rename(place)
    return place


def ensure_environment(
    name: str, installs: Sequence[Sequence[str]], cache: Path, say: Say, python: str = sys.executable
) -> Path:
    """The Python of a virtual environment with these packages, installed one call after another.

    Start its programs with `-m`: their scripts contain the path of the temporary folder.
    """

    def fill(folder: Path) -> None:
        say(f"installing {name}")
        try:
            uv = find_uv()
        except EngineBuildError as error:
            raise UnavailableError(str(error)) from error
        run_installer([uv, "venv", "--quiet", "--python", python, str(folder)])
        into = ("--quiet", "--python", str(folder / "bin" / "python"), *torch_source(os.environ))
        for install in installs:
            run_installer([uv, "pip", "install", *into, *install])

    tag = "cp" + run_installer([python, "-c", "import sys; print(*sys.version_info[:2], sep='')"]).strip()
    return ensure_folder(cache / "peers" / f"{name}-{tag}", fill) / "bin" / "python"


def run_installer(argv: list[str]) -> str:
    """Run one step of an installation and return its output; raises UnavailableError with the end of an error."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    except subprocess.TimeoutExpired as error:
        raise UnavailableError(f"`{' '.join(argv[1:])}` took longer than {PATIENCE_S:.0f} s") from error
    if done.returncode != 0:
        raise UnavailableError(f"`{' '.join(argv[1:])}` failed: {done.stderr.strip()[-LAST_CHARACTERS:]}")
    return done.stdout
