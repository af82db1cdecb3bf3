"""The workflow of the how-to page: the keys that GitHub knows, and commands that are ours and fail when ours do."""

import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml

from flows.cli import app
from tests.flows.deployed import ROOT

FILE = ROOT / "docs" / "how-to" / "gate-a-pull-request.yaml"
# https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-syntax
TOP = {"name", "run-name", "on", "permissions", "env", "defaults", "concurrency", "jobs"}
JOB = {"name", "permissions", "needs", "if", "runs-on", "environment", "concurrency", "outputs", "env", "defaults",
       "steps", "timeout-minutes", "strategy", "continue-on-error", "container", "services"}  # fmt: skip
STEP = {"id", "if", "name", "uses", "run", "working-directory", "shell", "with", "env", "timeout-minutes"}


@pytest.fixture(scope="module")
def workflow() -> dict[str, Any]:
    found = yaml.load(FILE.read_text(), yaml.BaseLoader)  # noqa: S506 - texts only, so that `on` stays a name
    assert isinstance(found, dict)
    return found


def test_every_key_is_one_of_a_workflow(workflow: dict[str, Any]) -> None:
    (job,) = workflow["jobs"].values()

    assert set(workflow) <= TOP
    assert {"on", "jobs"} <= set(workflow)
    assert set(job) <= JOB
    assert {"runs-on", "steps"} <= set(job)
    assert all(set(step) <= STEP and ("run" in step) != ("uses" in step) for step in job["steps"])


def test_no_text_of_a_pull_request_stands_in_a_script(workflow: dict[str, Any]) -> None:
    (job,) = workflow["jobs"].values()

    assert not any("${{" in step["run"] for step in job["steps"])


def test_its_command_is_one_of_ours_and_its_exit_code_is_that_of_the_step(
    workflow: dict[str, Any], tmp_path: Path
) -> None:
    (job,) = workflow["jobs"].values()
    script = job["steps"][0]["run"]
    program = tmp_path / "nightbench"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\nexit 1\n')
    program.chmod(0o755)

    done = subprocess.run(
        ["bash", "-e", "-c", script], env=job["env"] | {"PATH": f"{tmp_path}:/usr/bin:/bin"}, cwd=tmp_path, check=False,
        capture_output=True, text=True,
    )  # fmt: skip
    words = done.stdout.splitlines()
    command = typer.main.get_group(app).commands[words[0]]
    with command.make_context(words[0], words[1:]) as context:
        given = context.params

    assert done.returncode == 1
    assert (tmp_path / "comment.md").read_text() == done.stdout
    assert (given["one"], given["other"]) == (job["env"]["BASE"], job["env"]["HEAD"])
    assert shlex.quote(given["target"]) == "local"
