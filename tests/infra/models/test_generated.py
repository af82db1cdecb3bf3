import hashlib
import json
import struct
from pathlib import Path

import pytest

from infra.models.generated import (
    SMALL,
    SPECIALS,
    TINY,
    LlamaShape,
    byte_characters,
    silent_tokens,
    tokens,
    write_small_model,
)

# Of the tiny model with seed 0. A change here changes every number ever measured with a generated model: it is a new
# entry in METHOD.md, not a line to update in passing.
PINNED = {
    "config.json": "8cdfea26ec3cba89e1e742147933a9a760343bfa960c5a232c47dff197e9832d",
    "generation_config.json": "da9a14e90d78e2d52e35470ce161f327ffeb7a9e2ff33389a335fc946cb4f3dc",
    "model.safetensors": "5fc06f5adc77b19efa7c81f862350ee20ad2c2dd987502556fe35d78e1f1e35e",
    "tokenizer.json": "ee4a90c3a40170d53983b8efef536544296ac852ccda82980654b7dd0055885e",
    "tokenizer_config.json": "323b6525bac6b61e13e960d0fe7106415379c001ef13ffa89b1392aebcf641f6",
}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "tiny"
    write_small_model(folder, seed=0, shape=TINY)
    return folder


def _hashes(folder: Path) -> dict[str, str]:
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(folder.iterdir())}


def _tensor(folder: Path, name: str) -> bytes:
    content = (folder / "model.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    start, end = json.loads(content[8 : 8 + length])[name]["data_offsets"]
    return content[8 + length + start : 8 + length + end]


def test_the_same_seed_gives_the_same_bytes_on_every_machine(tiny: Path) -> None:
    assert _hashes(tiny) == PINNED


def test_another_seed_gives_other_weights_and_other_words(tiny: Path, tmp_path: Path) -> None:
    write_small_model(tmp_path, seed=1, shape=TINY)

    ours, other = _hashes(tiny), _hashes(tmp_path)
    assert ours["model.safetensors"] != other["model.safetensors"]
    assert ours["tokenizer.json"] != other["tokenizer.json"]


def test_the_small_model_has_34_million_parameters() -> None:
    assert SMALL.weights_bytes == 2 * 34_087_424


def test_the_weights_file_is_as_long_as_its_header_says(tiny: Path) -> None:
    content = (tiny / "model.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])

    end = max(entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__")
    assert length % 8 == 0
    assert end == TINY.weights_bytes == len(content) - 8 - length


def test_no_special_or_unprintable_token_can_win_a_greedy_choice(tiny: Path) -> None:
    row = 2 * TINY.hidden
    lm_head = _tensor(tiny, "lm_head.weight")

    silent = set(silent_tokens())
    zeroed = {token for token in range(TINY.vocabulary) if not any(lm_head[token * row : (token + 1) * row])}
    assert zeroed == silent
    assert len(silent) == len(SPECIALS) + 256 - 95


def test_weights_spread_as_a_linear_layer_should(tiny: Path) -> None:
    embedding = _tensor(tiny, "model.embed_tokens.weight")

    values = [struct.unpack("<f", b"\0\0" + embedding[i : i + 2])[0] for i in range(0, len(embedding), 2)]
    mean = sum(values) / len(values)
    assert abs(mean) < 0.02
    assert abs(sum(value * value for value in values) / len(values) - 1.0) < 0.05


def test_every_token_is_unique_and_every_word_has_its_space(tiny: Path) -> None:
    vocabulary = tokens(TINY.vocabulary, seed=0)

    words = vocabulary[len(SPECIALS) + 256 :]
    assert len(set(vocabulary)) == TINY.vocabulary
    assert vocabulary[: len(SPECIALS)] == list(SPECIALS)
    assert all(word.startswith("Ġ") and word[1:].isalpha() for word in words)
    assert json.loads((tiny / "tokenizer.json").read_text("utf-8"))["model"]["vocab"][vocabulary[-1]] == 10239


def test_every_byte_has_a_visible_character_of_its_own() -> None:
    characters = byte_characters()

    assert len(set(characters)) == 256
    assert characters[ord("A")] == "A"
    assert characters[ord(" ")] == "Ġ"
    assert characters[ord("\n")] == "Ċ"


def test_words_are_found_whole_without_merges(tiny: Path) -> None:
    model = json.loads((tiny / "tokenizer.json").read_text("utf-8"))["model"]

    assert model["ignore_merges"] is True
    assert model["merges"] == []


@pytest.mark.parametrize("shape", [SMALL, TINY])
def test_vllm_bench_latency_finds_all_of_its_ten_thousand_token_ids(shape: LlamaShape) -> None:
    assert shape.vocabulary >= 10_000
