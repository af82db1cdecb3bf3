"""Generate LoRA adapters for a generated Llama: random, repeatable, and strong enough to change every answer."""

from pathlib import Path

from bench.suite.workloads.adapters import adapter_names
from infra.models.generated import LlamaShape, Tensor, weights, write_json, write_safetensors

RANK = 8  # vLLM holds adapters of rank 16 and less unless --max-lora-rank says more
FOLDER = "adapters"  # in the model's folder


def write_adapters(model: Path, seed: int, shape: LlamaShape, count: int) -> None:
    """Write `count` adapters in PEFT's format, each in a folder of its own name below the model's."""
    for number, name in enumerate(adapter_names(count)):
        folder = model / FOLDER / name
        folder.mkdir(parents=True)
        write_json(folder / "adapter_config.json", _CONFIG)
        named = tuple(_tensors(shape))
        values = (weights(shape.hidden, seed + 1000 * (number + 1), one) for one in named)
        write_safetensors(folder / "adapter_model.safetensors", named, values)


_CONFIG: dict[str, object] = {
    "peft_type": "LORA",
    "task_type": "CAUSAL_LM",
    "r": RANK,
    "lora_alpha": 2 * RANK,
    "lora_dropout": 0.0,
    "bias": "none",
    "target_modules": ["q_proj", "v_proj", "o_proj"],
}


def _tensors(shape: LlamaShape) -> list[Tensor]:
    queries, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    sizes = {"q_proj": (shape.hidden, queries), "v_proj": (shape.hidden, keys), "o_proj": (queries, shape.hidden)}
    found: list[Tensor] = []
    for layer in range(shape.layers):
        for module, (wide, out) in sizes.items():
            name = f"base_model.model.model.layers.{layer}.self_attn.{module}"
            found += [(f"{name}.lora_A.weight", (RANK, wide), 1.0), (f"{name}.lora_B.weight", (out, RANK), 1.0)]
    return found
