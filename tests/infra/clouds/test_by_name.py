"""A cloud is one folder and one name in a table: nothing else imports it or compares its name."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from infra.clouds.by_name import RENTED

ROOT = Path(__file__).parents[3]
TABLE = ROOT / "infra" / "clouds" / "by_name.py"


@cache
def sources() -> dict[Path, ast.Module]:
    """Our source files, read by the worker that runs these tests and by no other."""
    rooms = ("bench", "catalog", "nights", "meter", "infra", "warehouse", "tasks", "flows")
    return {path: ast.parse(path.read_text()) for room in rooms for path in (ROOT / room).rglob("*.py")}


# A load driver that a suite may name has the same name as the cloud of scripts.
OTHER_MEANINGS = {"command": ("bench/suite", "infra/loadgen", "infra/engines/secret_environment.py")}


@pytest.mark.parametrize("name", RENTED)
def test_only_the_table_imports_a_clouds_folder(name: str) -> None:
    folder = ROOT / "infra" / "clouds" / name
    importers = [
        path
        for path, tree in sources().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith(f"infra.clouds.{name}.")
        if not path.is_relative_to(folder)
    ]

    assert importers == [TABLE]


@pytest.mark.parametrize("name", RENTED)
def test_no_file_outside_a_clouds_folder_has_its_name_as_a_value(name: str) -> None:
    folder = ROOT / "infra" / "clouds" / name
    named = [
        path.relative_to(ROOT)
        for path, tree in sources().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and node.value == name and not path.is_relative_to(folder)
    ]

    assert [path for path in named if not str(path).startswith(OTHER_MEANINGS.get(name, ()))] == []


def test_the_table_imports_no_clouds_client_library() -> None:
    code = "import sys, infra.bootstrap; print([name for name in ('pydo', 'azure', 'requests') if name in sys.modules])"

    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_what_a_cloud_can_do_is_an_ability_and_no_class() -> None:
    """Only what opens the clouds imports their classes, so nothing else can ask for one."""
    importers = {
        (path.relative_to(ROOT).as_posix(), name.name)
        for path, tree in sources().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module in {"infra.clouds.static", "infra.clouds.local"}
        for name in node.names
        if name.name.endswith("Cloud")
    }

    assert importers == {("infra/bootstrap.py", "LocalCloud"), ("infra/bootstrap.py", "StaticCloud")}
