"""Our own Python children import nothing from the folder that they were started in."""

import ast
import os
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import get_args

import pytest

from infra.leases.watchdog import PATHS
from infra.processes.environment import ChildEnvironment
from infra.processes.own_program import from_any_folder, own_program
from infra.settings import Settings

ROOT = Path(__file__).parents[3]
PACKAGES = ("bench", "catalog", "flows", "infra", "meter", "tasks", "warehouse")
ISOLATED = {"-P", "-I", "ISOLATE + PROGRAM.read_text('utf-8')"}
OWN = ("bench.", "catalog.", "flows", "infra.", "meter", "tasks.", "warehouse.", "pip")


def argvs() -> Iterator[tuple[str, list[str]]]:
    """Every list or tuple in our code that is a command line of Python, as source texts, with the file's name."""
    for path in sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.List | ast.Tuple):
                words = [one.value if isinstance(one, ast.Constant) else ast.unparse(one) for one in node.elts]
                texts = [word for word in words if isinstance(word, str)]
                if _is_python(texts):
                    yield str(path.relative_to(ROOT)), texts


def _is_python(words: list[str]) -> bool:
    runs_ours = any(first == "-m" and word.lstrip("f'\"").startswith(OWN) for first, word in pairwise(words))
    return runs_ours or words[:1] == ["sys.executable"] or (bool(words) and "-c" in words and "ython" in words[0])


def test_no_command_line_of_our_python_imports_from_the_current_folder() -> None:
    found = list(argvs())

    unsafe = [(file, words) for file, words in found if not ISOLATED & set(words)]
    assert unsafe == []
    assert {
        "infra/agent/executor.py",
        "infra/engines/canary.py",
        "infra/engines/llama_cpp.py",
        "infra/loadgen/command.py",
        "infra/measurement/lm_eval_venv.py",
        "infra/processes/own_program.py",
    } <= {file for file, _ in found}


def test_our_modules_are_run_by_this_python_without_the_current_folder() -> None:
    assert own_program("flows", "reap") == (sys.executable, "-P", "-m", "flows", "reap")


def test_a_child_in_another_folder_gets_whole_paths_and_no_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given = ChildEnvironment({"PYTHONPATH": f"{os.pathsep}lib{os.pathsep}/opt", "NIGHTBENCH_DO_CA": "ca.pem", "A": "b"})

    assert from_any_folder(given, ["NIGHTBENCH_DO_CA", "NIGHTBENCH_SSH_KEY"]) == {
        "PYTHONPATH": f"{tmp_path}/lib{os.pathsep}/opt",
        "NIGHTBENCH_DO_CA": f"{tmp_path}/ca.pem",
        "A": "b",
    }


def test_every_setting_that_is_a_path_is_whole_for_the_watchdog() -> None:
    fields = {name: field.annotation for name, field in Settings.model_fields.items()}
    paths = {f"NIGHTBENCH_{name.upper()}" for name, kind in fields.items() if Path in (kind, *get_args(kind))}

    assert paths - {"NIGHTBENCH_DATA"} == set(PATHS)
