"""The service as docs/how-to/schedule-a-night.md starts it: its commands, run as they stand there by a shell."""

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.flows.serving import NOT_OURS, PATIENCE_S, Service, free_port, is_healthy, migrated

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "schedule-a-night.md"
LOGIN, ENVIRONMENT, SERVER, DEPLOY, WORKER = range(5)  # the blocks of commands, in the order of the page


def blocks() -> list[str]:
    return re.findall(r"```bash\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)


@dataclass(frozen=True)
class AsDocumented:
    """A computer with nothing but the checkout: a home of its own, another port, another data folder, and no more."""

    home: Path
    port: int

    @property
    def api_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/api"

    @property
    def login(self) -> str:
        return (self.home / ".config" / "nightbench" / "prefect-login").read_text("utf-8").strip()

    def environment(self) -> dict[str, str]:
        ours = {name: value for name, value in os.environ.items() if not name.startswith(NOT_OURS)}
        return {**ours, "HOME": str(self.home), "PREFECT_HOME": str(self.home / ".prefect")}

    def commands(self, block: int, *more: str) -> str:
        """The commands of a block, in a shell where those for every terminal were typed before."""
        known = blocks()
        typed = [known[ENVIRONMENT], *([] if block == ENVIRONMENT else [known[block]])]
        text = "\n".join([*(typed if block != LOGIN else [known[LOGIN]]), *more])
        return text.replace("4200", str(self.port)).replace('"$PWD/data"', f'"{self.home}/data"')

    def run(self, block: int, *more: str) -> str:
        """Run the commands of a block to their end; returns what they print."""
        argv = ["bash", "-euo", "pipefail", "-c", self.commands(block, *more)]
        env = self.environment()
        done = subprocess.run(argv, env=env, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    @contextmanager
    def keep_running(self, block: int, name: str) -> Iterator[Service]:
        """Let the commands of a block run, of which the last one does not end by itself."""
        log = self.home / f"{name}.txt"
        with log.open("wb") as sink:
            process = subprocess.Popen(
                ["bash", "-euo", "pipefail", "-c", self.commands(block)],
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                env=self.environment(),
                cwd=ROOT,
                start_new_session=True,
            )
        try:
            yield Service(process, self.home / ".prefect", log)
        finally:
            os.killpg(process.pid, signal.SIGINT)
            try:
                process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(timeout=10)


@contextmanager
def service(home: Path, shared: Path | None) -> Iterator[tuple[AsDocumented, Service]]:
    """The page's server, with its pool, its queue and its deployments; no worker yet."""
    made = AsDocumented(home, free_port())
    migrated(home / ".prefect", shared)
    made.run(LOGIN)
    with made.keep_running(SERVER, "server") as server:
        server.wait_until(lambda: is_healthy(made.api_url), "the server is healthy")
        made.run(DEPLOY)
        yield made, server
