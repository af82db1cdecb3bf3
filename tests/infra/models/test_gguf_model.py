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


def test_a_folder_of_safetensors_is_refused_for_llama_cpp_when_the_suite_is_read(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").touch()
    suite = tmp_path / "s.toml"
    suite.write_text(SUITE.format(name="llama.cpp", source=f"path:{tmp_path}"))

    with pytest.raises(SuiteError, match=r"llama\.cpp serves gguf weights, and .* holds safetensors weights only"):
        parse_suite_file(suite)


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
