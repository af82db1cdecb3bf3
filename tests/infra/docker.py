"""The fake docker of tests/emulators on a PATH of its own, and an image for it to know."""

import json
import sys
from pathlib import Path

EMULATORS = Path(__file__).parents[1] / "emulators"
DIGEST = "sha256:" + "0123456789abcdef" * 4
IMAGE = f"vllm/vllm-openai-rocm@{DIGEST}"


class Docker:
    """The fake docker on PATH, and what became of it."""

    def __init__(self, folder: Path, bin_folder: Path) -> None:
        self.state = folder
        self.folder = bin_folder
        self.state.mkdir()
        self.folder.mkdir()
        self.install()

    def install(self, state: str | None = None) -> None:
        """Put the program there; `state`: the folder of its state as a shell writes it, such as one below "$HOME"."""
        script = self.folder / "docker"
        environment = f'FAKE_DOCKER="{state or self.state}" FAKE_DOCKER_PROGRAM="{EMULATORS / "truth_server.py"}"'
        script.write_text(f'#!/bin/sh\n{environment} exec "{sys.executable}" "{EMULATORS / "fake_docker.py"}" "$@"\n')
        script.chmod(0o755)

    def breaks(self, *faults: str) -> None:
        (self.state / "faults").write_text("\n".join(faults))

    @property
    def calls(self) -> list[str]:
        path = self.state / "calls"
        return path.read_text().splitlines() if path.exists() else []

    @property
    def containers(self) -> list[str]:
        return sorted(path.stem for path in (self.state / "containers").glob("*.json"))

    def state_of(self, name: str) -> dict[str, object]:
        value = json.loads((self.state / "containers" / f"{name}.json").read_text())
        assert isinstance(value, dict)
        return value
