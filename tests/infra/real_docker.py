"""The docker of this computer, where its daemon responds, and an image for it: Python and the engine of known truth."""

import gzip
import io
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.emulators.registry import RegistryEmulator
from tests.infra.docker import EMULATORS

REPOSITORY = "team/vllm"
LEFT_OUT = frozenset({"site-packages", "dist-packages", "test", "idlelib", "ensurepip", "lib2to3", "tkinter"})
_LIBRARY = re.compile(r"(?:=> )?(/\S+) \(0x")


def require_daemon() -> None:
    """Skip the test where no daemon of docker responds."""
    if shutil.which("docker") is None or docker("version", "--format", "{{.Server.Version}}").returncode:
        pytest.skip("no docker daemon responds here")


def docker(*words: str) -> "subprocess.CompletedProcess[str]":
    """Run a command of docker."""
    return subprocess.run(["docker", *words], capture_output=True, text=True, check=False, timeout=300)


def containers() -> list[str]:
    """The names of our containers, those that ended too."""
    return docker("ps", "--all", "--filter", "name=^nb-", "--format", "{{.Names}}").stdout.split()


def push_engine(registry: RegistryEmulator) -> str:
    """Let a registry have an image of the engine; returns its name with the digest of its index."""
    digest = registry.push(REPOSITORY, "1", {}, layers=(_layer(),), environment=("PATH=/usr/local/bin",))
    return f"{registry.host}/{REPOSITORY}@{digest}"


def _layer() -> bytes:
    """This Python with its standard library, the C libraries that it loads, and the program `vllm`."""
    python = Path(sys.executable).resolve()
    script = f"#!{python} -u\n".encode() + (EMULATORS / "truth_server.py").read_bytes()
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", dereference=True) as tar:
        for path in sorted({python, *_standard_library(), *_libraries(python)}):
            tar.add(path, arcname=str(path), recursive=False)
        engine = tarfile.TarInfo("usr/local/bin/vllm")
        engine.size, engine.mode = len(script), 0o755
        tar.addfile(engine, io.BytesIO(script))
        link = tarfile.TarInfo("usr/local/bin/python3")
        link.type, link.linkname = tarfile.SYMTYPE, str(python)
        tar.addfile(link)
    return gzip.compress(content.getvalue(), compresslevel=1)


def _standard_library() -> Iterator[Path]:
    root = Path(sysconfig.get_path("stdlib"))
    for path in root.rglob("*"):
        if path.is_file() and not LEFT_OUT & set(path.relative_to(root).parts) and path.suffix != ".a":
            yield path


def _libraries(python: Path) -> Iterator[Path]:
    """The shared libraries of Python and of its own modules, by the names that they are loaded by."""
    modules = (Path(sysconfig.get_path("stdlib")) / "lib-dynload").glob("*.so")
    listed = subprocess.run(["ldd", python, *modules], capture_output=True, text=True, check=False).stdout
    yield from map(Path, _LIBRARY.findall(listed))
