"""A tool of the rig: how to install its newest release, and its commands for each load."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.clients.client import OFFLINE, QUIET, UnavailableError
from benchmarks.clients.environment import ensure_environment
from infra.reporting import Say

PATIENCE_S = 120.0
_NEWEST = re.compile(r"^\S+ \((?P<version>[^)\s]+)\)", re.MULTILINE)


@dataclass(frozen=True)
class Load:
    """One load of the rig: a closed loop with warm-up, or requests by a clock."""

    name: str
    streams: int | None  # closed loop
    rate_per_s: float | None  # open loop
    request_count: int
    warmup_count: int
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True)
class Task:
    """One run of a tool; it writes its results to `folder`, and other files to `logs`."""

    load: Load
    url: str
    tokenizer: Path
    folder: Path
    logs: Path


@dataclass(frozen=True)
class Tool:
    """A tool; `package` is its name in the registry, `least_python` the oldest Python that its releases accept."""

    name: str
    package: str
    command: Callable[[Path, Task], tuple[str, ...]]
    version: str = ""  # "": the newest release
    folder: str = ""  # the start of the names of its folders; "": the package
    install: Callable[[str, Path, Say], Path] | None = None  # None: a virtual environment with the package
    before: Sequence[str] = ()  # packages that are installed first
    least_python: tuple[int, int] = (3, 11)
    more_environment: Mapping[str, str] = field(default_factory=dict)
    is_offline: bool = True  # it is told to ask no model hub
    has_warmup: bool = False  # else the rig asks for none
    unwritten: frozenset[str] = frozenset()  # values that its files do not hold, or count in another way

    @property
    def environment(self) -> dict[str, str]:
        """The environment of its process: ours, less what would keep it offline, and its own."""
        ours = {name: value for name, value in os.environ.items() if name not in OFFLINE}
        return {**ours, **QUIET, **(OFFLINE if self.is_offline else {}), **self.more_environment}


def newest_version(tool: Tool) -> str:
    """The newest release in the package registry for a Python that this computer has.

    Raises UnavailableError if the registry cannot be asked or has none.
    """
    python = find_python(tool.least_python)
    argv = [sys.executable, "-m", "pip", "--python", python, "index", "versions", tool.package]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    found = _NEWEST.search(done.stdout)
    if done.returncode != 0 or found is None:
        raise UnavailableError(f"the registry names no release of {tool.package}: {done.stderr.strip()[-200:]}")
    return found["version"]


def ensure_tool(tool: Tool, version: str, cache: Path, say: Say) -> Path:
    """Install this release into the cache, once; returns the program. Raises UnavailableError."""
    if tool.install is not None:
        return tool.install(version, cache, say)
    python = find_python(tool.least_python)
    installs = (*((package,) for package in tool.before), (f"{tool.package}=={version}",))
    return ensure_environment(f"{tool.package}-{version}", installs, cache, say, python)


def find_python(least: tuple[int, int]) -> str:
    """An interpreter that is not older: this one, else one on the PATH or of pyenv; raises UnavailableError."""
    if sys.version_info[:2] >= least:
        return sys.executable
    names = [f"python3.{minor}" for minor in range(least[1], least[1] + 3)]
    on_path = [found for name in names if (found := shutil.which(name))]
    of_pyenv = [str(each) for name in names for each in Path.home().glob(f".pyenv/versions/*/bin/{name}")]
    for python in (*on_path, *of_pyenv):
        # A shim of pyenv stands on the PATH for every version, also for those that are not chosen.
        if subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0:
            return python
    raise UnavailableError(f"it needs Python {least[0]}.{least[1]} or newer, and none was found; install {names[0]}")
