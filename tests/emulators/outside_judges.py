"""Programs that nobody here wrote and that judge the emulated cloud: on PATH, else fetched once into the cache."""

import fcntl
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

FETCH_PATIENCE_S = 240.0
PRISM = "@stoplight/prism-cli@5.16.0"


class NoJudgeError(Exception):
    """A judge is not here and cannot be had; says why."""


def packer(cache: Path) -> Path:
    """HashiCorp's image builder, from the distribution's package, unpacked and not installed."""
    return _found("packer", cache / "packer", "usr/bin/packer", _fetch_packer)


def prism(cache: Path) -> Path:
    """The validating proxy for API descriptions, from npm, in a folder of its own."""
    return _found("prism", cache / "prism", "node_modules/.bin/prism", _fetch_prism)


def _found(name: str, folder: Path, program: str, fetch: Callable[[Path], None]) -> Path:
    installed = shutil.which(name)
    if installed is not None:
        return Path(installed)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f".{name}.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not folder.exists():
            beside = folder.with_name(f".{name}.unfinished")
            shutil.rmtree(beside, ignore_errors=True)
            beside.mkdir()
            fetch(beside)
            beside.rename(folder)
    if not (folder / program).exists():
        raise NoJudgeError(f"{folder} holds no {program}")
    return folder / program


def _fetch_packer(folder: Path) -> None:
    # What apt writes to its own cache on the way is nobody's business, so it downloads into this folder.
    _do(["apt-get", "download", "packer"], folder)
    for package in folder.glob("*.deb"):
        _do(["dpkg", "-x", package.name, "."], folder)
        package.unlink()


def _fetch_prism(folder: Path) -> None:
    _do(["npm", "install", "--no-audit", "--no-fund", "--silent", "--prefix", str(folder), PRISM], folder)


def _do(argv: list[str], folder: Path) -> None:
    try:
        done = subprocess.run(
            argv, cwd=folder, capture_output=True, timeout=FETCH_PATIENCE_S, check=False, env={**os.environ, "CI": "1"}
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoJudgeError(f"{argv[0]} cannot fetch it: {error}") from error
    if done.returncode:
        raise NoJudgeError(f"{argv[0]} cannot fetch it: {done.stderr.decode()[-300:].strip()}")
