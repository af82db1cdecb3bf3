"""The data of lm-eval's tasks, on a machine that is rented for one night."""

from dataclasses import replace
from pathlib import Path

import pytest

from bench.errors import LmEvalError
from bench.suite.engine import Engine
from bench.suite.quality import LmEval
from infra.agent.operations import ready_lm_eval
from infra.agent.prepare import PrepareRequest, prepare_engine_and_model
from infra.measurement.lm_eval_data import fetch_task_data
from infra.reporting import Reporter
from infra.settings import Settings

# As lm-eval ends where a data set does not exist, and offline where it is not cached; it writes down its calls.
HARNESS = """#!/bin/sh
echo "$HF_ENDPOINT $HF_HUB_OFFLINE $*" >> {calls}
case "$*" in *missing*) echo "DatasetNotFoundError: Dataset 'missing' doesn't exist" >&2; exit 1;; esac
[ "$HF_HUB_OFFLINE" = 0 ] && touch {calls}.cached
[ -e {calls}.cached ] || {{ echo "ConnectionError: Couldn't reach 'gsm8k' (OfflineModeIsEnabled)" >&2; exit 1; }}
"""
LOAD = "run --model dummy --limit 1 --tasks"


def settings_of(harness: Path) -> Settings:
    return Settings(cache=harness.parent, lm_eval=harness, hub_endpoint="http://hub.invalid")


@pytest.fixture
def harness(tmp_path: Path) -> Path:
    program = tmp_path / "lm-eval"
    program.write_text(HARNESS.format(calls=tmp_path / "calls"))
    program.chmod(0o755)
    return program


def test_each_task_is_loaded_once_online_and_one_that_fails_is_told_and_ends_nothing(
    harness: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    told: list[str] = []

    (failed,) = fetch_task_data(settings_of(harness), LmEval(tasks=("missing", "gsm8k")), told.append)

    assert (tmp_path / "calls").read_text().splitlines() == [
        f"{how} {LOAD} {task}" for task in ("missing", "gsm8k") for how in (" 1", "http://hub.invalid 0")
    ]
    assert failed in told
    assert failed.startswith("the data of the lm-eval task missing could not be downloaded: ")
    assert "Dataset 'missing' doesn't exist" in failed


def test_data_that_is_there_is_not_asked_for_again(harness: Path, tmp_path: Path) -> None:
    (tmp_path / "calls.cached").touch()
    told: list[str] = []

    failed = fetch_task_data(settings_of(harness), LmEval(tasks=("gsm8k",)), told.append)

    assert (failed, told) == ([], ["the data of the lm-eval task gsm8k is on this machine"])
    assert (tmp_path / "calls").read_text() == f" 1 {LOAD} gsm8k\n"


def test_an_image_without_the_data_of_a_task_is_not_made(harness: Path) -> None:
    settings = settings_of(harness)

    with pytest.raises(LmEvalError, match=r"the data of the lm-eval task missing could not be downloaded: .*exist"):
        ready_lm_eval(settings, Reporter(lambda _line: None), LmEval(tasks=("missing",)))


def test_a_folder_of_ones_own_has_its_data(harness: Path, tmp_path: Path) -> None:
    fetch_task_data(settings_of(harness), LmEval(tasks=("mine",), folder="/tasks"), lambda _line: None)

    assert not (tmp_path / "calls").exists()


@pytest.mark.parametrize("is_rented", [True, False])
def test_only_a_rented_machine_downloads_data(harness: Path, tmp_path: Path, *, is_rented: bool) -> None:
    engine = tmp_path / "vllm"
    engine.touch(mode=0o755)
    request = PrepareRequest(
        Engine(version="0.32.0", max_model_len=4096),
        "generated:tiny?seed=0",
        tmp_path / "models",
        lease_id="a",
        lm_eval=LmEval(tasks=("gsm8k",)),
    )
    settings = Settings(cache=tmp_path, lm_eval=harness, vllm_executable=engine)

    prepare_engine_and_model(replace(request, is_rented=is_rented), settings, lambda _line: None)

    assert (tmp_path / "calls").exists() == is_rented
