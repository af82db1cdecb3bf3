"""llama.cpp is built once for each source, compiler and CPU."""

from pathlib import Path

import pytest

from bench.errors import EngineBuildError
from infra.engines import llama_cpp
from infra.engines.llama_cpp import ensure_llama_cpp, llama_cpp_place
from infra.engines.venv import MARKER


def test_the_place_depends_on_sources_and_flags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = llama_cpp_place(tmp_path)
    monkeypatch.setattr(llama_cpp, "FLAGS", (*llama_cpp.FLAGS, "-DGGML_NATIVE=OFF"))
    other = llama_cpp_place(tmp_path)

    assert llama_cpp_place(tmp_path).folder == other.folder != first.folder
    assert first.build == "llama.cpp from the sources of llama-cpp-python==0.3.36"


def test_what_is_built_is_used_again_at_once(tmp_path: Path) -> None:
    place = llama_cpp_place(tmp_path)
    place.folder.mkdir(parents=True)
    (place.folder / MARKER).write_text("{}")

    assert ensure_llama_cpp(tmp_path, lambda _line: None) == place


def test_a_host_without_a_compiler_is_told_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(EngineBuildError, match=r"needs a C and a C\+\+ compiler"):
        llama_cpp_place(tmp_path)
