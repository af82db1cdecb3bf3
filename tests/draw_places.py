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


def places() -> list[str]:
    """Each module inside a room."""
    modules = [path for name in WITH_ROOMS for path in (ROOT / name).rglob("*.py") if path.name != "__init__.py"]
    names = [path.relative_to(ROOT).as_posix() for path in modules]
    return sorted(name for name in names if name.count("/") > 1)


def draw(seed: int, count: int) -> list[str]:
    """So many of these modules, the same for the same seed."""
    return random.Random(seed).sample(places(), count)


def description(name: str) -> str:
    """The first line of a module's docstring."""
    return (ast.get_docstring(ast.parse((ROOT / name).read_text("utf-8"))) or "").partition("\n")[0]


def main(argv: Sequence[str] | None = None) -> None:
    """Print the drawn descriptions, and with `--answers` their modules."""
    parser = argparse.ArgumentParser(description="Draw modules to look for in the README's map.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--answers", action="store_true")
    options = parser.parse_args(argv)
    for name in draw(options.seed, options.count):
        sys.stdout.write(f"{description(name)}\n" + (f"    {name}\n" if options.answers else ""))


if __name__ == "__main__":
    main()
