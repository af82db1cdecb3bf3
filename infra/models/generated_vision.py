"""Generate a small model that reads images: an Idefics3 with random weights, made like infra/models/generated.py.

Its text half is the generated Llama. Idefics3, because the other architectures of vLLM that read images import
torchvision, which the build for the CPU does not have. An image of any size takes `image_tokens` and 3 tokens more.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from infra.models.generated import (
    IDS,
    SMALL,
    SPECIALS,
    TINY,
    WEIGHTS,
    LlamaShape,
    Tensor,
    config,
    tensors,
    tokenizer,
    tokenizer_config,
    weights,
    write_json,
    write_safetensors,
)

# transformers adds one that is missing at an id beyond the embeddings, so all of them are in the vocabulary.
VISION_SPECIALS = (*SPECIALS, "<image>", "<fake_token_around_image>", "<global-img>", "<end_of_utterance>")
IMAGE = VISION_SPECIALS.index("<image>")
CHAT_TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>\n"
    "{% if message['content'] is string %}{{ message['content'] }}"
    "{% else %}{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<image>{% else %}{{ part['text'] }}{% endif %}"
    "{% endfor %}{% endif %}<|end|>"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)
PROCESSOR = "Idefics3Processor"


@dataclass(frozen=True)
class VisionShape:
    """The sizes of the text half and of the tower that reads images, which are scaled to a square of `side` pixels."""

    text: LlamaShape
    hidden: int = 64
    layers: int = 2
    heads: int = 2
    intermediate: int = 128
    side: int = 224
    patch: int = 16
    scale: int = 2  # the connector makes one token of scale x scale patches

    @property
    def patches(self) -> int:
        """How many patches an image has."""
        return (self.side // self.patch) ** 2

    @property
    def image_tokens(self) -> int:
        """How many tokens the patches of an image become."""
        return self.patches // self.scale**2

    @property
    def weights_bytes(self) -> int:
        """The size of the weights: two bytes per parameter."""
        return 2 * sum(math.prod(dimensions) for _, dimensions, _ in vision_tensors(self))


# 69 MB and 3.1 MB.
VISION_SHAPES = {"vision": VisionShape(SMALL), "tinyvision": VisionShape(TINY)}


def write_vision_model(folder: Path, seed: int, shape: VisionShape) -> None:
    """Write the seven files of a Hugging Face model into this folder, which is created if missing."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "config.json", vision_config(shape))
    write_json(folder / "generation_config.json", IDS)
    write_json(folder / "preprocessor_config.json", preprocessor_config(shape))
    write_json(folder / "processor_config.json", {"processor_class": PROCESSOR, "image_seq_len": shape.image_tokens})
    write_json(folder / "tokenizer.json", tokenizer(shape.text.vocabulary, seed, VISION_SPECIALS))
    write_json(folder / "tokenizer_config.json", tokenizer_config(shape.text) | {"chat_template": CHAT_TEMPLATE})
    named = tuple(vision_tensors(shape))
    values = (weights(shape.text.hidden, seed, one, VISION_SPECIALS) for one in named)
    write_safetensors(folder / WEIGHTS, named, values)


def vision_config(shape: VisionShape) -> dict[str, object]:
    """The config.json that transformers and vLLM load."""
    text = config(shape.text)
    return {
        "architectures": ["Idefics3ForConditionalGeneration"],
        "model_type": "idefics3",
        "text_config": {key: value for key, value in text.items() if key != "torch_dtype"},
        "vision_config": {
            "model_type": "idefics3_vision",
            "hidden_size": shape.hidden,
            "intermediate_size": shape.intermediate,
            "num_hidden_layers": shape.layers,
            "num_attention_heads": shape.heads,
            "num_channels": 3,
            "image_size": shape.side,
            "patch_size": shape.patch,
            "hidden_act": "gelu_pytorch_tanh",
            "layer_norm_eps": 1e-6,
        },
        "scale_factor": shape.scale,
        "image_token_id": IMAGE,
        "tie_word_embeddings": False,
        **IDS,
        "torch_dtype": "bfloat16",
    }


def preprocessor_config(shape: VisionShape) -> dict[str, object]:
    """The preprocessor_config.json."""
    return {
        "image_processor_type": "Idefics3ImageProcessor",
        "processor_class": PROCESSOR,
        "do_convert_rgb": True,
        "do_resize": True,
        "size": {"longest_edge": shape.side},
        "max_image_size": {"longest_edge": shape.side},
        "do_image_splitting": False,  # an image is one tile, so that each takes the same number of tokens
        "resample": 1,
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.5, 0.5, 0.5],
        "do_pad": True,
    }


def vision_tensors(shape: VisionShape) -> Iterator[Tensor]:
    """The tensors of both halves; a standard deviation of 0 for a bias, which is all zeros."""
    for name, dimensions, std in tensors(shape.text):
        yield name.replace("model.", "model.text_model.", 1), dimensions, std
    yield from _tower(shape)
    folded = shape.hidden * shape.scale**2
    # A spread of 1, as the words' embeddings have, so that an image changes the answer.
    yield "model.connector.modality_projection.proj.weight", (shape.text.hidden, folded), 1 / math.sqrt(folded)


def _tower(shape: VisionShape) -> Iterator[Tensor]:
    tower, hidden = "model.vision_model.", shape.hidden
    yield f"{tower}embeddings.patch_embedding.weight", (hidden, 3, shape.patch, shape.patch), 1 / shape.patch
    yield f"{tower}embeddings.patch_embedding.bias", (hidden,), 0.0
    yield f"{tower}embeddings.position_embedding.weight", (shape.patches, hidden), 0.5
    linears = {f"self_attn.{part}_proj": (hidden, hidden) for part in ("q", "k", "v", "out")}
    linears |= {"mlp.fc1": (shape.intermediate, hidden), "mlp.fc2": (hidden, shape.intermediate)}
    for layer in range(shape.layers):
        for name, (rows, columns) in linears.items():
            yield f"{tower}encoder.layers.{layer}.{name}.weight", (rows, columns), 1 / math.sqrt(columns)
            yield f"{tower}encoder.layers.{layer}.{name}.bias", (rows,), 0.0
        for norm in ("layer_norm1", "layer_norm2"):
            yield from _norm(f"{tower}encoder.layers.{layer}.{norm}", hidden)
    yield from _norm(f"{tower}post_layernorm", hidden)


def _norm(name: str, hidden: int) -> Iterator[Tensor]:
    yield f"{name}.weight", (hidden,), None
    yield f"{name}.bias", (hidden,), 0.0
