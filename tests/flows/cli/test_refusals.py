"""A wrong setting, a night that does not exist, a file that cannot be written: a sentence, and nothing is written."""

import json
from pathlib import Path

import pytest

from bench.errors import UsageError
from flows.cli.arguments import read_settings
from flows.cli.bucket import upload
from infra.loadgen.trace_files import convert_log


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("NIGHTBENCH_SERVICE_PORT", "secret", "NIGHTBENCH_SERVICE_PORT: .*integer"),
        ("NIGHTBENCH_STALE_HOURS", "36h", "NIGHTBENCH_STALE_HOURS: .*number"),
        ("NIGHTBENCH_DO_SIZES", "{bad", "NIGHTBENCH_DO_SIZES: its value is not the JSON that it must be"),
    ],
)
def test_a_wrong_setting_is_named_and_its_value_is_not_repeated(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, said: str
) -> None:
    monkeypatch.setenv(name, value)

    with pytest.raises(UsageError, match=said) as refused:
        read_settings()

    assert value not in str(refused.value)


@pytest.mark.parametrize("night", ["2026-03-01T010000Z-typo", "2026-03-01T010000Z", "../../elsewhere"])
def test_the_upload_of_a_night_that_does_not_exist_is_refused_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, night: str
) -> None:
    monkeypatch.setenv("NIGHTBENCH_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("NIGHTBENCH_S3_BUCKET", "nights")

    with pytest.raises(UsageError, match=r"is not the id of a night|is not in .*/data/runs"):
        upload([night])

    assert list(tmp_path.rglob("*.json")) == []


def test_a_trace_is_not_written_below_a_file(tmp_path: Path) -> None:
    log, out = tmp_path / "log.jsonl", tmp_path / "file" / "trace.jsonl"
    body = {"messages": [{"content": "First?", "role": "user"}]}
    usage = {"usage": {"prompt_tokens": 5, "completion_tokens": 3}}
    log.write_text(json.dumps({"time": "2026-11-02T10:00:02Z", "request": body, "response": usage}) + "\n")
    out.parent.write_text("")

    with pytest.raises(UsageError, match=r"trace\.jsonl cannot be written"):
        convert_log(log, "gateway", out)
