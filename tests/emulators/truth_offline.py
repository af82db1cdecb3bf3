"""Stands in for what computes without a server: `vllm bench` and the engine's Python, with known results.

    python -m tests.emulators.truth_offline bench throughput|latency [flags of vLLM]
    python -m tests.emulators.truth_offline -c PROGRAM       (a command of training; the program itself is not run)

A batch takes `batch_s`, which no two shapes have in common. A training step prints the rates of `TRAINING`.
"""

import argparse
import json
import os
import sys
from pathlib import Path

VERSION = "0.32.0"
WARMUP, STEPS = 2, 12
TRAINING = {"train_tok_per_s": 4321.5, "loss": 2.5, "step_ms": 118.0}


def batch_s(isl: int, osl: int, requests: int) -> float:
    """The time of one batch: a millisecond for each hundred tokens of a prompt, and two for each token of an answer."""
    return requests * (isl / 100 + 2 * osl) / 1000


def bench(arguments: list[str]) -> dict[str, object]:
    """The JSON that `vllm bench throughput` or `vllm bench latency` writes."""
    parser = argparse.ArgumentParser(prog="vllm bench", allow_abbrev=False)
    parser.add_argument("kind", choices=["throughput", "latency"])
    parser.add_argument("--output-json", type=Path)
    for name in ("random-input-len", "random-output-len", "num-prompts", "input-len", "output-len", "batch-size"):
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--num-iters", type=int)
    asked, _others = parser.parse_known_args(arguments)
    if asked.kind == "throughput":
        isl, osl, requests = asked.random_input_len, asked.random_output_len, asked.num_prompts
        elapsed, tokens = batch_s(isl, osl, requests), requests * (isl + osl)
        rates = {"requests_per_second": requests / elapsed, "tokens_per_second": tokens / elapsed}
        found = {"elapsed_time": elapsed, "num_requests": requests, "total_num_tokens": tokens, **rates}
    else:
        each = batch_s(asked.input_len, asked.output_len, asked.batch_size)
        found = {"avg_latency": each, "latencies": [each] * asked.num_iters, "percentiles": {"50": each}}
    asked.output_json.write_text(json.dumps(found))
    return found


def train() -> None:
    """Print and write what the local command of a training suite does; its first steps are slower."""
    sys.stdout.write(f"{os.environ['NNODES']} ranks train together\n")
    lines = ["step,phase,step_ms"]
    for step in range(STEPS):
        slow = 2 if step < WARMUP else 1
        rate = TRAINING["train_tok_per_s"] / slow
        sys.stdout.write(f"step {step} loss {TRAINING['loss']:.4f} tokens_per_s {rate:.1f}\n")
        lines.append(f"{step},{'warmup' if step < WARMUP else 'training'},{slow * TRAINING['step_ms']:.3f}")
    Path("steps.csv").write_text("\n".join(lines) + "\n")


def main(arguments: list[str]) -> None:
    """Be whichever program these are the arguments of."""
    if arguments[0] == "bench":
        sys.stderr.write(f"INFO Initializing a V1 LLM engine (v{VERSION}) with config: model='truth'\n")
        bench(arguments[1:])
    else:
        train()


if __name__ == "__main__":
    main(sys.argv[1:])
