"""Draws modules at random, to check that the README's map leads to them.

`python -m tests.draw_places --seed 1` prints what each module does; `--answers` also prints where it is.
"""

import argparse
import ast
import random
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
WITH_ROOMS = ("bench", "infra", "warehouse")


def places() -> dict[str, str]:
    """Each module inside a room, with the first line of its docstring."""
    modules = sorted(path for name in WITH_ROOMS for path in (ROOT / name).rglob("*.py") if path.name != "__init__.py")
    found = {path.relative_to(ROOT).as_posix(): _first_line(path) for path in modules}
    return {name: line for name, line in found.items() if line and name.count("/") > 1}


def _first_line(path: Path) -> str:
    return (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").partition("\n")[0]


def draw(seed: int, count: int) -> dict[str, str]:
    """So many of these modules, the same for the same seed."""
    drawn = random.Random(seed).sample(sorted(places().items()), count)
    return dict(drawn)


def main(argv: Sequence[str] | None = None) -> None:
    """Print the drawn descriptions, and with `--answers` their modules."""
    parser = argparse.ArgumentParser(description="Draw modules to look for in the README's map.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--answers", action="store_true")
    options = parser.parse_args(argv)
    for name, line in draw(options.seed, options.count).items():
        sys.stdout.write(f"{line}\n    {name}\n" if options.answers else f"{line}\n")


if __name__ == "__main__":
    main()
