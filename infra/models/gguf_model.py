"""Write the generated model as a GGUF file, for llama.cpp: the weights and tokens of infra/models/generated.py."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
from gguf import GGUFReader, GGUFWriter, TokenType

from infra.models.generated import (
    BOS,
    CHAT_TEMPLATE,
    EOS,
    PAD,
    SPECIALS,
    LlamaShape,
    config,
    tensors,
    tokens,
    weights,
)

FILE = "model.gguf"
# A tokenizer of this kind needs one merge at least; both bytes stay tokens of their own everywhere else.
MERGES = ["a b"]
_LAYER = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}
_OUTER = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}

Weights = npt.NDArray[np.float32]


def write_gguf_model(path: Path, seed: int, shape: LlamaShape) -> None:
    """Write the model of this seed and shape, with F16 weights and F32 norms; the same bytes each time."""
    writer = GGUFWriter(path, "llama")
    _write_sizes(writer, shape)
    _write_tokenizer(writer, shape, seed)
    for name, values in _tensors(shape, seed):
        writer.add_tensor(name, values if values.ndim == 1 else values.astype(np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def gguf_vocab_size(path: Path) -> int:
    """How many tokens the file's vocabulary has; ValueError or KeyError if it is not a GGUF file with a tokenizer."""
    return len(GGUFReader(path).fields["tokenizer.ggml.tokens"].data)


def _write_sizes(writer: GGUFWriter, shape: LlamaShape) -> None:
    settings = config(shape)
    writer.add_context_length(shape.positions)
    writer.add_embedding_length(shape.hidden)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.intermediate)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_key_length(shape.head_dim)
    writer.add_value_length(shape.head_dim)
    writer.add_rope_dimension_count(shape.head_dim)
    writer.add_rope_freq_base(float(str(settings["rope_theta"])))
    writer.add_layer_norm_rms_eps(float(str(settings["rms_norm_eps"])))
    writer.add_vocab_size(shape.vocabulary)


def _write_tokenizer(writer: GGUFWriter, shape: LlamaShape, seed: int) -> None:
    listed = tokens(shape.vocabulary, seed)
    is_special = set(SPECIALS)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(listed)
    writer.add_token_types([TokenType.CONTROL if one in is_special else TokenType.NORMAL for one in listed])
    writer.add_token_merges(MERGES)
    writer.add_bos_token_id(BOS)
    writer.add_eos_token_id(EOS)
    writer.add_pad_token_id(PAD)
    writer.add_add_bos_token(True)
    writer.add_chat_template(CHAT_TEMPLATE)


def _tensors(shape: LlamaShape, seed: int) -> Iterator[tuple[str, Weights]]:
    """Each tensor by its name in GGUF."""
    for tensor in tensors(shape):
        name, dimensions, _std = tensor
        values = _float32(weights(shape.hidden, seed, tensor)).reshape(dimensions)
        if name.endswith(("q_proj.weight", "k_proj.weight")):
            values = _paired(values, dimensions[0] // shape.head_dim)
        yield gguf_name(name), values


def gguf_name(name: str) -> str:
    """What GGUF calls a tensor of a Hugging Face Llama."""
    stem = name.removesuffix(".weight")
    if stem in _OUTER:
        return f"{_OUTER[stem]}.weight"
    _model, _layers, number, part = stem.split(".", 3)
    return f"blk.{number}.{_LAYER[part]}.weight"


def _float32(bfloat16: bytearray) -> Weights:
    """A bfloat16 is the upper half of a float32."""
    return (np.frombuffer(bfloat16, dtype="<u2").astype("<u4") << 16).view("<f4")


def _paired(values: Weights, heads: int) -> Weights:
    """The rows in the order in which llama.cpp rotates them: both halves of a head side by side."""
    rows, hidden = values.shape
    return values.reshape(heads, 2, rows // heads // 2, hidden).swapaxes(1, 2).reshape(rows, hidden)
