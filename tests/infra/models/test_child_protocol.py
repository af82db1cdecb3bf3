"""The protocol that both transfer processes speak."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from infra.models.child_protocol import TransferFailure, describe, read_answer, write_job

CHILDREN = ("infra.models.hub_child", "infra.models.bucket_child")
OURS = ("bench", "catalog", "flows", "infra", "meter", "nights", "tasks", "warehouse")
LIST_MODULES = "import importlib, json, sys; importlib.import_module(sys.argv[1]); print(json.dumps(list(sys.modules)))"


@pytest.mark.parametrize("child", CHILDREN)
def test_a_child_imports_nothing_of_ours_but_the_protocol(child: str) -> None:
    done = subprocess.run([sys.executable, "-c", LIST_MODULES, child], capture_output=True, check=True)

    ours = {name for name in json.loads(done.stdout) if name.split(".")[0] in OURS}
    assert ours == {"infra", "infra.models", "infra.models.child_protocol", child}


@pytest.mark.parametrize("child", CHILDREN)
def test_an_unknown_operation_crashes_the_child_without_an_answer(child: str, tmp_path: Path) -> None:
    answer = tmp_path / "answer.json"

    argv = [sys.executable, "-P", "-m", child]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(write_job("unknown", answer, {}))
        process.stdin.flush()  # it stays open: the child exits when it closes
        log = process.stderr.read()

    assert (process.returncode, answer.exists()) == (1, False)
    assert log.strip().endswith("KeyError: 'unknown'")


def test_an_answer_is_a_result_or_a_failure_and_nothing_else() -> None:
    assert read_answer('{"result": {"bytes": 1}}') == {"bytes": 1}
    with pytest.raises(TransferFailure, match="gated: accept the terms") as caught:
        read_answer('{"failed": "gated", "message": "accept the terms"}')
    assert (caught.value.kind, caught.value.message) == ("gated", "accept the terms")
    for text in ("", "{", '{"bytes": 1}', '{"failed": "gated"}'):
        with pytest.raises((ValueError, KeyError)):
            read_answer(text)


def test_an_error_is_described_on_one_line_without_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")

    text = describe(ValueError("a\nb https://bucket/part?X-Amz-Signature=1 with hf_secret"))

    assert text == "ValueError: a b https://bucket/part with ***"
