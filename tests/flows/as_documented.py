"""The service as docs/how-to/schedule-a-night.md starts it: its commands, run as they stand there by a shell."""

import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import psutil

from tests.flows.serving import NOT_OURS, PATIENCE_S, free_port, migrated

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "schedule-a-night.md"
UP, STATUS, DOWN, SHELL = range(4)  # the blocks of commands, in the order of the page


def blocks() -> list[str]:
    return re.findall(r"```bash\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)


@dataclass(frozen=True)
class AsDocumented:
    """A computer with nothing but the checkout: a home of its own, other ports, another data folder, and no more."""

    home: Path
    port: int
    pages_port: int
    settings: Mapping[str, str] = field(default_factory=dict)  # others of its user's
    inside: tuple[str, ...] = ()  # what runs a command where this computer has a systemd; (): it has none

    @property
    def folder(self) -> Path:
        return self.home / "data" / "service"

    @property
    def api_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/api"

    @property
    def login(self) -> str:
        return (self.folder / "login").read_text("utf-8").strip()

    def log(self, part: str) -> str:
        return (self.folder / f"{part}.log").read_text("utf-8")

    def environment(self) -> dict[str, str]:
        ours = {name: value for name, value in os.environ.items() if not name.startswith((*NOT_OURS, "DBUS_"))}
        return {
            **ours,
            "HOME": str(self.home),
            "XDG_RUNTIME_DIR": str(self.home),  # no systemd of this user, who may run a service of their own
            "PATH": f"{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}",
            "NIGHTBENCH_DATA": str(self.home / "data"),
            "NIGHTBENCH_SERVICE_PORT": str(self.port),
            "NIGHTBENCH_PAGES_PORT": str(self.pages_port),
            **self.settings,
        }

    def run(self, block: int, *more: str, exit_code: int = 0) -> str:
        """Run the commands of a block, and more, to their end; returns what they print."""
        text = "\n".join([blocks()[block], *more]).replace("data/service", str(self.folder))
        argv = [*self.inside, "bash", "-euo", "pipefail", "-c", f"cd {ROOT}\n{text}"]
        env = self.environment()
        done = subprocess.run(argv, env=env, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        assert done.returncode == exit_code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def kill(self, part: str) -> None:
        """End a part as the kernel does where memory runs out."""
        process = psutil.Process(int((self.folder / f"{part}.pid").read_text("utf-8").split()[0]))
        process.kill()
        psutil.wait_procs([process], timeout=PATIENCE_S)

    def wait_until(self, is_so: Callable[[], bool], what: str, patience_s: float = PATIENCE_S) -> None:
        """Wait for something that its worker brings about; the worker's log is shown where it does not."""
        until = time.monotonic() + patience_s
        while not is_so():
            assert time.monotonic() < until, f"{what}: not within {patience_s} s\n{self.log('worker')[-4000:]}"
            time.sleep(0.5)

    def left(self) -> list[str]:
        """The processes of this service that run."""
        found = []
        for process in psutil.process_iter():
            try:
                if str(self.home) in " ".join([*process.cmdline(), process.environ().get("PREFECT_HOME", "")]):
                    found.append(f"{process.pid} {process.cmdline()}")
            except (OSError, psutil.Error):
                continue
        return found


@contextmanager
def service(
    home: Path, shared: Path | None, settings: Mapping[str, str] = MappingProxyType({}), inside: tuple[str, ...] = ()
) -> Iterator[AsDocumented]:
    """The page's service, and nothing of it after the block."""
    made = AsDocumented(home, free_port(), free_port(), settings, inside)
    migrated(made.folder / "prefect", shared)
    try:
        made.run(UP)
        yield made
    finally:
        made.run(DOWN)
    assert made.left() == []
