"""Every program that a night of a suite starts, each with known results, in the place of the real ones."""

import sys
from pathlib import Path

import pytest

from tests.flows.conftest import NightFixture
from tests.flows.deployed import ROOT

_MODULE = f'PYTHONPATH="{ROOT}" exec "{sys.executable}" -u -m tests.emulators.'
_OFFLINE, _LLAMA = (f'{_MODULE}{name} "$@"' for name in ("truth_offline", "truth_llama"))
_SERVER = f'exec "{sys.executable}" -u "{ROOT / "tests" / "emulators" / "truth_server.py"}" "$@"'
PROGRAMS = {
    "vllm": f'if [ "$1" = bench ]; then {_OFFLINE}; fi\n{_SERVER}',
    "python": _OFFLINE,  # the engine's own, which commands are run with
    "llama-server": _LLAMA,
}


def use_truth_programs(house: NightFixture, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the nights of this process start them; returns the log that the servers write."""
    folder, log = house.data.parent / "programs", house.data.parent / "told.jsonl"
    folder.mkdir()
    for name, text in PROGRAMS.items():
        (folder / name).write_text(f'#!/bin/sh\nexport TRUTH_LOG="{log}"\n{text}\n')
        (folder / name).chmod(0o755)
    monkeypatch.setenv("NIGHTBENCH_VLLM_EXECUTABLE", str(folder / "vllm"))
    monkeypatch.setenv("NIGHTBENCH_LLAMA_SERVER", str(folder / "llama-server"))
    return log
