"""llama.cpp is built once for each source, compiler and CPU."""

from pathlib import Path

import pytest

from bench.errors import EngineBuildError
from infra.engines.llama_cpp import build_key, ensure_llama_cpp, llama_cpp_place
from infra.engines.venv import MARKER

BUILD = (b"source", ("-DA=1", "settings"), "gcc 12.2.0", b"avx2")


@pytest.mark.parametrize("place", range(4))
def test_a_build_is_kept_by_its_sources_settings_compiler_and_cpu(place: int) -> None:
    others = (b"other source", ("-DA=2", "settings"), "gcc 13.1.0", b"avx2 avx512f")
    source, settings, compiler, cpu = (*BUILD[:place], others[place], *BUILD[place + 1 :])

    assert build_key(*BUILD) == build_key(*BUILD)
    assert build_key(source, settings, compiler, cpu) != build_key(*BUILD)  # type: ignore[arg-type] # one of each


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
