"""pyproject's dependencies are the packages that our code imports: no more, no fewer."""

import ast
import re
import sys
import tomllib
from collections.abc import Collection
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OURS = ("bench", "catalog", "infra", "meter", "nights", "warehouse", "tasks", "flows")
ONLY_BOUNDED = {"fastapi", "sqlalchemy"}  # Prefect imports them; we only keep them below versions that break Prefect
# What runs on a remote host has an environment of its own: requirements/machine.in.
ON_THE_HOST = (
    "bench",
    "catalog",
    "infra/agent",
    "infra/engines",
    "infra/hardware",
    "infra/loadgen",
    "infra/models",
    "nights",
)


CONTROLLER_ONLY = {"nights/bucket.py", "nights/limited_pools.py"}  # what runs on a host imports neither


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[\[<>=;\s]", line, maxsplit=1)[0].lower() for line in requirements}


def imported(*folders: str, without: Collection[str] = ()) -> set[str]:
    """The distributions that the Python files below these folders import."""
    found: set[str] = set()
    files = {path for folder in folders for path in (ROOT / folder).rglob("*.py")}
    for path in files - {ROOT / name for name in without}:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module.split(".")[0])
    third_party = found - set(sys.stdlib_module_names) - set(OURS)
    by_module = packages_distributions()
    # Of the distributions that share a name (azure), the first one holds the part that we use.
    return {min(by_module.get(module, [module])).lower().replace("_", "-") for module in third_party}


def test_every_import_is_a_declared_dependency_and_every_dependency_is_imported() -> None:
    declared = names(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"])

    assert imported(*OURS) == declared - ONLY_BOUNDED


def test_the_lock_is_made_of_the_declared_dependencies() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    locked = [line.split("#")[0].strip() for line in (ROOT / "requirements/pipeline.in").read_text().splitlines()]

    assert set(declared) <= set(locked)


@pytest.mark.parametrize("folder", ON_THE_HOST)
def test_what_runs_on_a_host_imports_only_what_is_installed_there(folder: str) -> None:
    lines = (ROOT / "requirements/machine.in").read_text().splitlines()
    installed = names([line for line in lines if not line.startswith("#")])

    assert imported(folder, without=CONTROLLER_ONLY) <= installed
