"""The page that adds a suite for a new model, followed literally."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bench.catalog.rows import CatalogModel
from tests.catalog.dimensions import kv_elements_per_token, matmul_param_count, param_count

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "how-to" / "add-a-model.md").read_text("utf-8")


def _block(language: str) -> str:
    (found,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return str(found)


def test_the_row_of_the_page_is_right_by_the_model_s_dimensions() -> None:
    (row,) = CatalogModel.table(_block("csv"), "docs/how-to/add-a-model.md")

    assert (row.params_total, row.params_active_matmul) == (param_count(row), matmul_param_count(row))
    assert row.kv_elems_per_token == kv_elements_per_token(row)


def test_one_row_and_one_file_are_enough_to_plan_a_new_model(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "catalog", tmp_path / "catalog")
    header, row = _block("csv").splitlines()
    models = tmp_path / "catalog" / "models.csv"
    assert next(csv.reader([header])) == next(csv.reader(models.read_text("utf-8").splitlines()))
    models.write_text(models.read_text("utf-8") + row + "\n")
    (command,) = re.findall(r"^\.venv/bin/nightbench (plan .*)$", PAGE, re.MULTILINE)
    (tmp_path / command.split()[1]).write_text(_block("toml"))

    # In this folder the copy of the catalogue is the one that is imported.
    argv = [sys.executable, "-m", "flows", *command.split(), "--json"]
    env = {**os.environ, "NIGHTBENCH_ACCEPT_RISK": "1"}  # this plan is about the model, and not about the nets
    done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=120)

    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    assert sorted({run["scenario"] for run in plan["runs"]}) == [f"chat/concurrency={slots}" for slots in (1, 16, 64)]
    assert plan["estimates"]["cold"]["is_known"]
    # 7.6 billion weights of two bytes, and 64 contexts of 2048 tokens with 28,672 values of two bytes each.
    assert plan["fit"]["needed_gib"] == pytest.approx((7.616e9 * 2 + 64 * 2048 * 28_672 * 2) / 1024**3, rel=0.1)
    assert not [why for why in plan["doubts"] if "refused" in why]
