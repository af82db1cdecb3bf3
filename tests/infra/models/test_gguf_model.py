"""The generated model as a GGUF file: the names, sizes and weights of its safetensors twin."""

from pathlib import Path

import numpy as np
import pytest
from gguf import GGUFReader

from bench.errors import ModelError, SuiteError
from infra.loadgen.suite_file import parse_suite_file
from infra.models.files import gguf_of
from infra.models.generated import TINY, tensors, weights
from infra.models.gguf_model import gguf_name
from infra.models.models import prepare_model

SUITE = """\
name = "s"
[model]
name = "m"
source = "{source}"
[engine]
name = "{name}"
version = "1"
max_model_len = 4096
[[scenarios]]
name = "one"
isl = 128
osl = 64
concurrency = 1
request_count = 8
"""


def test_the_gguf_file_has_the_weights_of_the_seed_with_q_and_k_in_pairs(tmp_path: Path) -> None:
    model = prepare_model("generated:tiny?seed=0&format=gguf", tmp_path, lambda _line: None)

    found = {one.name: one for one in GGUFReader(gguf_of(model.path)).tensors}
    assert set(found) == {gguf_name(name) for name, _dimensions, _std in tensors(TINY)}
    assert (model.vocab_size, model.weights_bytes) == (TINY.vocabulary, gguf_of(model.path).stat().st_size)
    for tensor in tensors(TINY):
        name, dimensions, std = tensor
        raw = np.frombuffer(weights(TINY.hidden, 0, tensor), dtype="<u2").astype("<u4") << 16
        twin = raw.view("<f4").reshape(dimensions)
        here = found[gguf_name(name)].data
        if "q_proj" in name or "k_proj" in name:
            half = TINY.head_dim // 2
            heads = here.reshape(-1, half, 2, TINY.hidden)  # of llama.cpp: a pair is a row of each half
            here = np.concatenate((heads[:, :, 0], heads[:, :, 1]), axis=1).reshape(dimensions)
        assert here.dtype == (np.float32 if std is None else np.float16)
        np.testing.assert_allclose(here.astype(np.float32), twin, rtol=1e-3, atol=1e-6)


def test_a_folder_with_a_gguf_file_alone_is_a_model_and_has_its_vocabulary(tmp_path: Path) -> None:
    made = prepare_model("generated:tiny?seed=0&format=gguf", tmp_path, lambda _line: None)
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    gguf_of(made.path).rename(theirs / "theirs-Q8.gguf")

    assert prepare_model(f"path:{theirs}", tmp_path, lambda _line: None).vocab_size == TINY.vocabulary


def test_a_file_that_is_no_gguf_is_named(tmp_path: Path) -> None:
    (tmp_path / "wrong.gguf").write_bytes(b"PK\x03\x04" * 100)

    with pytest.raises(ModelError, match=r"wrong\.gguf is not a GGUF file with a tokenizer"):
        prepare_model(f"path:{tmp_path}", tmp_path, lambda _line: None)


def test_two_gguf_files_are_refused_with_their_names_and_parts_of_one_are_not(tmp_path: Path) -> None:
    for name in ("a-00001-of-00002.gguf", "a-00002-of-00002.gguf"):
        (tmp_path / name).touch()
    assert gguf_of(tmp_path).name == "a-00001-of-00002.gguf"
    (tmp_path / "b.gguf").touch()

    with pytest.raises(ModelError, match=r"must hold one GGUF file, and holds a-00001-of-00002.gguf, b.gguf"):
        gguf_of(tmp_path)


def test_a_gguf_file_may_have_the_word_of_its_parts_in_its_name(tmp_path: Path) -> None:
    (tmp_path / "mixture-of-experts-Q4_K_M.gguf").touch()

    assert gguf_of(tmp_path).name == "mixture-of-experts-Q4_K_M.gguf"


def _refused(folder: Path, engine: str, source: str) -> str:
    suite = folder / "s.toml"
    suite.write_text(SUITE.format(name=engine, source=source))
    with pytest.raises(SuiteError) as caught:
        parse_suite_file(suite)
    return str(caught.value).replace(f"{folder}/", "")


def test_weights_in_a_folder_are_refused_at_their_line_when_the_engine_does_not_serve_them(tmp_path: Path) -> None:
    for engine, own, other in (("llama.cpp", "gguf", "safetensors"), ("vllm", "safetensors", "gguf")):
        folder = tmp_path / engine
        folder.mkdir()
        (folder / f"model.{other}").touch()

        said = _refused(tmp_path, engine, f"path:{folder}")

        assert said.startswith(
            f"s.toml:4: model.source: {engine} serves {own} weights, and {engine} holds {other} weights"
        )


def test_a_model_of_several_is_refused_at_its_own_line(tmp_path: Path) -> None:
    (tmp_path / "hub").mkdir()
    (tmp_path / "hub" / "model.safetensors").touch()
    one, other = "generated:tiny?seed=0&format=gguf", f"path:{tmp_path}/hub"
    text = SUITE.format(name="llama.cpp", source=one)
    table = text[text.index("[model]") : text.index("[engine]")]
    first = table.replace("[model]", "[[models]]")
    second = first.replace('"m"', '"n"').replace(one, other)
    (tmp_path / "s.toml").write_text(text.replace(table, first + second))

    with pytest.raises(SuiteError, match=r"s\.toml:7: models\.1\.source: llama\.cpp serves gguf weights"):
        parse_suite_file(tmp_path / "s.toml")


def test_a_gguf_file_is_refused_by_vllm_and_needs_its_folder_in_llama_cpp(tmp_path: Path) -> None:
    source = f"path:{tmp_path}/small.gguf"

    assert "vllm serves safetensors weights, and model.source = " in _refused(tmp_path, "vllm", source)
    said = _refused(tmp_path, "llama.cpp", source)
    assert said.startswith(f"s.toml:4: model.source: {tmp_path}/small.gguf is a file".replace(f"{tmp_path}/", ""))
    assert said.endswith(f"give its folder: path:{tmp_path}")


LOCAL = """
[local.model]
name = "tiny"
source = "generated:tiny?seed=0{format}"
[local.engine]
name = "{engine}"
version = "1"
max_model_len = 4096
"""


@pytest.mark.parametrize(("engine", "of"), [("vllm", "gguf"), ("llama.cpp", "safetensors")])
def test_the_weights_of_the_local_model_are_held_against_the_local_engine(tmp_path: Path, engine: str, of: str) -> None:
    suite = tmp_path / "s.toml"
    local = LOCAL.format(engine=engine, format="&format=gguf" if of == "gguf" else "")
    suite.write_text(SUITE.format(name="vllm", source="hf:maker/small@main") + local)

    with pytest.raises(SuiteError, match=rf"s\.toml:\d+: local\.engine\.name: {engine} serves .* has {of} weights"):
        parse_suite_file(suite)
