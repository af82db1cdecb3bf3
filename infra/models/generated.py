"""Generate a small model: random weights and a real tokenizer, without a download.

Its text makes no sense; its speed is that of its shape, which is what a benchmark needs. It uses the standard library
only, and the same seed gives the same bytes.
"""

import json
import math
import random
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

SPECIALS = ("<|unk|>", "<|bos|>", "<|eos|>", "<|pad|>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>")
BOS, EOS, PAD = 1, 2, 3
IDS = {"bos_token_id": BOS, "eos_token_id": EOS, "pad_token_id": PAD}
WEIGHTS = "model.safetensors"
PRINTABLE = range(32, 127)
SPACE = "Ġ"  # how byte-level BPE writes a space
SYLLABLES = tuple(consonant + vowel for consonant in "bdfghjklmnprstvwz" for vowel in "aeiou")
STRIPE = 16384  # weights that share one table of 256 gaussians

CHAT_TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>\n"
    "{% if message['content'] is string %}{{ message['content'] }}"
    "{% else %}{% for part in message['content'] %}{{ part['text'] }}{% endfor %}{% endif %}<|end|>"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)
# Its name, dimensions and standard deviation; None for a norm, which is all ones.
Tensor = tuple[str, tuple[int, ...], float | None]


@dataclass(frozen=True)
class LlamaShape:
    """The sizes of a Llama; each attention head is `head_dim` wide."""

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    intermediate: int
    vocabulary: int  # 10,000 at least, or `vllm bench latency` sends token ids beyond it
    positions: int
    head_dim: int = 64

    @property
    def weights_bytes(self) -> int:
        """The size of the weights: two bytes per parameter."""
        return 2 * sum(math.prod(dimensions) for _, dimensions, _ in tensors(self))


# 34.1 M parameters, 68 MB: on two cores a token takes 7-10 ms. A smaller model streams too fast to measure.
SMALL = LlamaShape(hidden=512, layers=8, heads=8, kv_heads=4, intermediate=1408, vocabulary=10240, positions=32768)
# 1.3 M parameters, 2.6 MB: for tests.
TINY = LlamaShape(
    hidden=64, layers=2, heads=2, kv_heads=1, intermediate=176, vocabulary=10240, positions=32768, head_dim=32
)

SHAPES = {"small": SMALL, "tiny": TINY}


def write_small_model(folder: Path, seed: int = 0, shape: LlamaShape = SMALL) -> None:
    """Write the five files of a Hugging Face model into this folder, which is created if missing."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "config.json", config(shape))
    write_json(folder / "generation_config.json", IDS)
    (folder / "tokenizer.json").write_text(_tokenizer_text(shape.vocabulary, seed), "utf-8")
    write_json(folder / "tokenizer_config.json", tokenizer_config(shape))
    named = tuple(tensors(shape))
    write_safetensors(folder / WEIGHTS, named, (weights(shape.hidden, seed, one) for one in named))


def write_json(path: Path, content: Mapping[str, object]) -> None:
    """Write one of a model's JSON files; the same content gives the same bytes."""
    path.write_text(_json_text(content), "utf-8")


def _json_text(content: Mapping[str, object]) -> str:
    return json.dumps(content, indent=1, ensure_ascii=True) + "\n"


@lru_cache(maxsize=1)  # two thirds of the time that a tiny model takes
def _tokenizer_text(vocabulary: int, seed: int) -> str:
    return _json_text(tokenizer(vocabulary, seed))


def config(shape: LlamaShape) -> dict[str, object]:
    """The config.json that transformers and vLLM load."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": shape.hidden,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "intermediate_size": shape.intermediate,
        "vocab_size": shape.vocabulary,
        "max_position_embeddings": shape.positions,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": False,
        **IDS,
        "torch_dtype": "bfloat16",
    }


def tokenizer(vocabulary: int, seed: int, specials: Sequence[str] = SPECIALS) -> dict[str, object]:
    """The tokenizer.json of a byte-level BPE without merges: any text encodes, and whole words keep their ids."""
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    bos = {"SpecialToken": {"id": SPECIALS[BOS], "type_id": 0}}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [_special_token(number, text) for number, text in enumerate(specials)],
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [bos, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [bos, {"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {SPECIALS[BOS]: {"id": SPECIALS[BOS], "ids": [BOS], "tokens": [SPECIALS[BOS]]}},
        },
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            # Without merges a word is one token of the vocabulary, else one token per byte.
            "ignore_merges": True,
            "vocab": {text: number for number, text in enumerate(tokens(vocabulary, seed, specials))},
            "merges": [],
        },
    }


def _special_token(number: int, text: str) -> dict[str, object]:
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {"id": number, "content": text, **flags}


def tokens(vocabulary: int, seed: int, specials: Sequence[str] = SPECIALS) -> list[str]:
    """Every token by its id: special tokens, the 256 bytes, then random words with a leading space."""
    words = dict.fromkeys([*specials, *byte_characters()])
    rng = random.Random(f"words {seed}")  # noqa: S311 - repeatable, not secret
    while len(words) < vocabulary:
        words[SPACE + "".join(rng.choices(SYLLABLES, k=rng.randint(2, 4)))] = None
    return list(words)


def byte_characters() -> list[str]:
    """GPT-2's map: the printable character that stands for each byte, in the order of the bytes."""
    shown = {*range(33, 127), *range(161, 173), *range(174, 256)}
    hidden = iter(range(256, 512))
    return [chr(byte if byte in shown else next(hidden)) for byte in range(256)]


def tokenizer_config(shape: LlamaShape) -> dict[str, object]:
    """The tokenizer_config.json, with a short chat template."""
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": SPECIALS[BOS],
        "eos_token": SPECIALS[EOS],
        "pad_token": SPECIALS[PAD],
        "unk_token": SPECIALS[0],
        "model_max_length": shape.positions,
        "clean_up_tokenization_spaces": False,
        "chat_template": CHAT_TEMPLATE,
    }


def silent_tokens(specials: Sequence[str] = SPECIALS) -> Iterator[int]:
    """Ids whose lm_head rows are zero: special tokens and unprintable bytes, so that outputs are visible text."""
    yield from range(len(specials))
    yield from (len(specials) + byte for byte in range(256) if byte not in PRINTABLE)


def tensors(shape: LlamaShape) -> Iterator[Tensor]:
    """The tensors of a Llama."""
    queries, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    linears = {
        "self_attn.q_proj": (queries, shape.hidden),
        "self_attn.k_proj": (keys, shape.hidden),
        "self_attn.v_proj": (keys, shape.hidden),
        "self_attn.o_proj": (shape.hidden, queries),
        "mlp.gate_proj": (shape.intermediate, shape.hidden),
        "mlp.up_proj": (shape.intermediate, shape.hidden),
        "mlp.down_proj": (shape.hidden, shape.intermediate),
    }
    yield "model.embed_tokens.weight", (shape.vocabulary, shape.hidden), 1.0
    for layer in range(shape.layers):
        for name, dimensions in linears.items():
            yield f"model.layers.{layer}.{name}.weight", dimensions, 1 / math.sqrt(dimensions[1])
        for name in ("input_layernorm", "post_attention_layernorm"):
            yield f"model.layers.{layer}.{name}.weight", (shape.hidden,), None
    yield "model.norm.weight", (shape.hidden,), None
    # Twice the usual spread, so that greedy answers vary instead of settling on one word.
    yield "lm_head.weight", (shape.vocabulary, shape.hidden), 2 / math.sqrt(shape.hidden)


def write_safetensors(path: Path, named: Sequence[Tensor], values: Iterable[bytes | bytearray]) -> None:
    """Write these tensors, in bfloat16, with the values of each."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, dimensions, _ in named:
        start, end = end, end + 2 * math.prod(dimensions)
        header[name] = {"dtype": "BF16", "shape": list(dimensions), "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for value in values:
            file.write(value)


def weights(hidden: int, seed: int, tensor: Tensor, specials: Sequence[str] = SPECIALS) -> bytearray:
    """The values of one of `tensors`, as bfloat16."""
    name, dimensions, std = tensor
    values = _weights(f"{name} {seed}", math.prod(dimensions), std)
    if name == "lm_head.weight":
        for token in silent_tokens(specials):
            values[2 * token * hidden : 2 * (token + 1) * hidden] = bytes(2 * hidden)
    return values


def _weights(seed: str, count: int, std: float | None) -> bytearray:
    """Random bfloat16 weights; ones if `std` is None, as for a norm.

    Each stripe picks from its own table of 256 gaussians by random bytes: `bytes.translate` works at memory speed.
    """
    if std is None:
        return bytearray(_bfloat16(1.0) * count)
    rng = random.Random(seed)  # noqa: S311 - repeatable, not secret
    weights = bytearray(2 * count)
    for start in range(0, 2 * count, 2 * STRIPE):
        end = min(start + 2 * STRIPE, 2 * count)
        table = [_bfloat16(rng.gauss(0, std)) for _ in range(256)]
        picks = rng.randbytes((end - start) // 2)
        weights[start:end:2] = picks.translate(bytes(low for low, _ in table))
        weights[start + 1 : end : 2] = picks.translate(bytes(high for _, high in table))
    return weights


def _bfloat16(value: float) -> bytes:
    """A bfloat16, little-endian: the upper half of a float32."""
    return struct.pack("<f", value)[2:]
