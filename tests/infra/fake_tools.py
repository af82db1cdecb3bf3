"""Programs of a machine that is not there: scripts on a PATH of their own, which say what they were told to say."""

import shlex
from dataclasses import dataclass, field
from pathlib import Path

DATA = Path(__file__).parents[1] / "data" / "gpu-tools"
PART = {"name": "nvme0n1p1", "path": "/dev/nvme0n1p1", "type": "part", "size": 10**9, "mountpoints": [None]}


@dataclass
class FakeTools:
    """Scripts in a folder that is the whole PATH; `calls` lists their calls. A call without a reply fails."""

    folder: Path
    _cases: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)

    def says(self, tool: str, text: str, *, when: str = "", exit_code: int = 0, then: str = "") -> None:
        """Have a tool say this where its arguments hold `when`, and run `then`; the latest that fits counts."""
        cases = self._cases.setdefault(tool, [])
        pattern = f"*{shlex.quote(when)}*" if when else "*"
        cases.insert(0, f"{pattern}) {then or ':'}; printf %s {shlex.quote(text)}; exit {exit_code};;")
        script = self.folder / tool
        lines = "\n".join(cases)
        call = f'echo "{tool} $*" >> {shlex.quote(str(self.folder / "calls.log"))}'
        refuse = f'*) echo "fake {tool}: not told what to say to: $*" >&2; exit 99;;'
        script.write_text(f'#!/bin/sh\n{call}\ncase "$*" in\n{lines}\n{refuse}\nesac\n')
        script.chmod(0o755)

    @property
    def calls(self) -> list[str]:
        """Every call so far, as one line each."""
        log = self.folder / "calls.log"
        return log.read_text().splitlines() if log.exists() else []

    def called(self, tool: str) -> list[str]:
        """The calls of one tool."""
        return [call for call in self.calls if call.split()[0] == tool]


def twin(name: str) -> str:
    """A text of tests/data/gpu-tools."""
    return (DATA / name).read_text()


def amd(tools: FakeTools, *, metric: str = "amd-metric-idle.json", process: str = "amd-process-none.json") -> None:
    """Give the machine one MI300X."""
    tools.says("amd-smi", twin("amd-static.json"), when="static --json")
    tools.says("amd-smi", twin(metric), when="metric --json")
    tools.says("amd-smi", twin(process), when="process --json")
