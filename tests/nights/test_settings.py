"""The environment is read for the settings of storage in one place."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_only_one_place_reads_the_storage_settings() -> None:
    calls = [
        str(path.relative_to(ROOT))
        for room in ("bench", "catalog", "nights", "infra", "warehouse", "tasks", "flows")
        for path in (ROOT / room).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "StorageSettings"
    ]

    assert calls == ["nights/settings.py"]
