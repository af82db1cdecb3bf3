"""docs/how-to/audit-a-result.md is followed: its table is audited, and the audit prints what the page shows."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from flows.cli import app

PAGE = (Path(__file__).parents[3] / "docs" / "how-to" / "audit-a-result.md").read_text("utf-8")


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_audit_of_the_table_prints_what_the_page_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (table,), (context,) = blocks("csv"), blocks("toml")
    (tmp_path / "vendor.csv").write_text(table)
    monkeypatch.chdir(tmp_path)

    done = CliRunner().invoke(app, ["audit", "vendor.csv"])
    (tmp_path / "vendor.context.toml").write_text(context)
    with_context = CliRunner().invoke(app, ["audit", "vendor.csv"])

    shown = [line for block in blocks("text") for line in block.splitlines()]
    assert [line for line in shown if line not in done.output] == []
    assert done.exit_code == 1
    assert ("pass --max-model-len" in done.output, "pass --max-model-len" in with_context.output) == (True, False)
