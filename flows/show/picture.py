"""The picture of a terminal in the README: `python -m flows.show.picture` draws it again.

It shows an example of a night, since every real one would be another picture.
"""

import io
import re
from pathlib import Path

from rich.console import Console

from bench.night_progress import (
    LoadProgress,
    NightBegan,
    NightState,
    Rented,
    StageBegan,
    StageEnded,
    StageReported,
)
from flows.show.night_lines import NightLines
from infra.clouds.by_name import RENTED

PICTURE = Path(__file__).parents[2] / "docs" / "images" / "terminal.svg"
CLOUD = next(iter(RENTED))  # the first one, which `default` rents from
WIDTH = 96
NOW_S = 1394.0
STAGES = {
    "provision digitalocean": (0.0, 214.0),
    "engine and model meta-llama/Llama-3.3-70B-Instruct": (214.0, 742.0),
    "canary before the first server": (742.0, 761.0),
    "calibrate": (761.0, 803.0),
    "server for chat": (803.0, 1012.0),
    "measure chat #0": (1012.0, 1118.0),
    "measure chat #1": (1118.0, 1221.0),
    "measure long-context #0": (1221.0, 1339.0),
}
MISSING = {"measure chat": 2, "measure long-context": 2, "measure summary": 2}
EXPECTED = {
    "provision digitalocean": 240.0,
    "engine and model meta-llama/Llama-3.3-70B-Instruct": 560.0,
    "calibrate": 40.0,
    "server": 200.0,
    "canary before the first server": 20.0,
    "measure chat": 105.0,
    "measure long-context": 120.0,
    "measure summary": 95.0,
    "stop server": 8.0,
    "teardown": 12.0,
    "load": 14.0,
    "judge": 3.0,
    "report": 5.0,
}


def example() -> NightState:
    """A night that measures its fourth run."""
    state = NightState()
    state.apply(NightBegan("2026-03-01T010000Z", "llama-3.3-70b", CLOUD, 6, MISSING, EXPECTED))
    for number, (title, (began_s, ended_s)) in enumerate(STAGES.items()):
        state.apply(StageBegan(number, title, began_s))
        state.apply(StageEnded(number, ended_s))
    state.apply(Rented("lease", "gpu-mi300x1-192gb", 1.99, 92.0))
    state.apply(StageBegan(99, "measure long-context #1", 1339.0))
    state.apply(StageReported(99, load=LoadProgress(164 / 360, 164, 360, 1873.0)))
    return state


def picture() -> str:
    """The picture as SVG; it loads no font from elsewhere."""
    screen = Console(width=WIDTH, height=40, record=True, file=io.StringIO(), force_terminal=True)
    screen.print(NightLines(example(), 0.0, NOW_S))
    drawn = screen.export_svg(title="nightbench run", unique_id="nightbench")
    return re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL)


def main() -> None:
    """Draw docs/images/terminal.svg."""
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    PICTURE.write_text(picture(), encoding="utf-8")


if __name__ == "__main__":
    main()
