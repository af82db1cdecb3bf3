"""The environment is read for the settings of storage in one place."""

import ast
from pathlib import Path

import pytest

from infra.settings import Settings
from nights.settings import settings_now, storage_settings

ROOT = Path(__file__).parents[2]


def test_only_one_place_reads_the_storage_settings() -> None:
    calls = [
        str(path.relative_to(ROOT))
        for room in ("bench", "catalog", "nights", "infra", "warehouse", "tasks", "flows")
        for path in (ROOT / room).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call)
        and any(isinstance(one, ast.Name) and one.id == "StorageSettings" for one in (node.func, *node.args))
    ]

    assert calls == ["nights/settings.py"]


def test_a_setting_that_changes_is_seen_at_once_in_each_kind_of_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    def seen() -> tuple[str, str]:
        return str(storage_settings().data), str(settings_now(Settings).data)

    monkeypatch.setenv("NIGHTBENCH_DATA", "one")
    before = seen()
    monkeypatch.setenv("NIGHTBENCH_DATA", "other")
    after = seen()
    monkeypatch.delenv("NIGHTBENCH_DATA")

    assert (before, after, seen()) == (("one", "one"), ("other", "other"), ("data", "data"))


def test_the_settings_of_an_environment_are_read_once() -> None:
    assert settings_now(Settings) is settings_now(Settings)
