"""The generated model that reads images: its files, sizes and bytes. tests/flows/test_real_engine.py serves it."""

import json
import math
import struct
from pathlib import Path

import pytest

from bench.errors import ModelError
from infra.models.generated_vision import IMAGE, VISION_SHAPES, VISION_SPECIALS, vision_tensors
from infra.models.models import PreparedModel, prepare_model

SHAPE = VISION_SHAPES["tinyvision"]
# Of seed 0, over the manifest. Another value changes every number that was measured with this model: see METHOD.md.
PINNED = "62598688c46e8ce6e8424a738edf240ce81d47cacbce387a7489d1f818af91ea"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> PreparedModel:
    return prepare_model("generated:tinyvision?seed=0", tmp_path_factory.mktemp("models"), lambda _line: None)


def test_the_same_seed_gives_the_same_bytes_on_every_machine(model: PreparedModel) -> None:
    assert (model.sha256, model.vocab_size) == (PINNED, SHAPE.text.vocabulary)


def test_the_weights_are_those_of_both_halves_and_of_the_connector(model: PreparedModel) -> None:
    content = (model.path / "model.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    del header["__metadata__"]

    assert {name: tuple(one["shape"]) for name, one in header.items()} == {
        name: dimensions for name, dimensions, _std in vision_tensors(SHAPE)
    }
    assert {name.split(".")[1] for name in header} == {"text_model", "vision_model", "connector", "weight"}
    assert (
        len(content) - 8 - length == SHAPE.weights_bytes == 2 * sum(math.prod(one["shape"]) for one in header.values())
    )
    start, end = header["model.vision_model.post_layernorm.bias"]["data_offsets"]
    assert not any(content[8 + length + start : 8 + length + end])


def test_the_image_token_is_the_same_in_configuration_vocabulary_and_processor(model: PreparedModel) -> None:
    read = {name: json.loads((model.path / f"{name}.json").read_text()) for name in ("config", "tokenizer")}
    processor = json.loads((model.path / "processor_config.json").read_text())

    vocabulary = read["tokenizer"]["model"]["vocab"]
    assert read["config"]["image_token_id"] == IMAGE == vocabulary["<image>"]
    assert [one["content"] for one in read["tokenizer"]["added_tokens"]] == list(VISION_SPECIALS)
    assert len(vocabulary) == SHAPE.text.vocabulary  # an id beyond the embeddings would end the engine
    assert processor["image_seq_len"] == SHAPE.image_tokens == 49


def test_llama_cpp_has_no_such_model(tmp_path: Path) -> None:
    with pytest.raises(
        ModelError, match=r"unknown shape in generated:vision\?seed=0&format=gguf: use one of small, tiny"
    ):
        prepare_model("generated:vision?seed=0&format=gguf", tmp_path, lambda _line: None)
