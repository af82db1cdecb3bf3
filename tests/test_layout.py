"""The rooms stay small enough to find things in: folders, modules, and the sentence that opens each folder."""

import ast
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("bench", "catalog", "flows", "infra", "meter", "nights", "tasks", "warehouse")
MODULES_MAX = 30  # side by side in one folder
FLAT = {"meter"}  # one bundle that runs on any host as a single file
LINES_MAX = 300


def modules(*packages: str) -> list[Path]:
    return sorted(path for package in packages for path in (ROOT / package).rglob("*.py"))


def folders() -> list[Path]:
    return sorted({path.parent for path in modules(*PACKAGES)})


def test_no_folder_holds_more_modules_than_a_reader_can_scan() -> None:
    counts = Counter(str(path.parent.relative_to(ROOT)) for path in modules(*PACKAGES) if path.name != "__init__.py")

    assert {name: count for name, count in counts.items() if count > MODULES_MAX and name not in FLAT} == {}


def test_no_module_is_too_long() -> None:
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in modules(*PACKAGES)}

    assert {name: count for name, count in lengths.items() if count > LINES_MAX} == {}


@pytest.mark.parametrize("folder", folders(), ids=lambda folder: str(folder.relative_to(ROOT)))
def test_each_folder_opens_with_one_sentence(folder: Path) -> None:
    opening = ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""

    first = opening.split("\n\n", maxsplit=1)[0]
    assert first.endswith(".")
    assert first.count(". ") == 0


def test_each_room_with_tests_has_them_under_its_own_name() -> None:
    mirrored = ("bench", "infra", "nights", "warehouse")
    tests = {
        path.parent.relative_to(ROOT / "tests")
        for top in mirrored
        for path in (ROOT / "tests" / top).rglob("test_*.py")
    }

    assert [str(folder) for folder in sorted(tests) if not (ROOT / folder).is_dir()] == []
