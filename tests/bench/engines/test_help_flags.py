"""Flags are held against what the engines themselves print of them."""

from pathlib import Path

import pytest

from bench.engines.help_flags import flags_in_help, unknown_flags

RECORDED = Path(__file__).parents[2] / "data" / "engine-help"
VLLM = flags_in_help((RECORDED / "vllm-0.32.0.txt").read_text())
LLAMA_CPP = flags_in_help((RECORDED / "llama-server-0.5.0-dev.txt").read_text())


@pytest.mark.parametrize(
    "flags",
    [
        ("--tensor-parallel-size", "8", "--no-enable-prefix-caching", "--max_num_seqs=64"),
        ("-tp", "8", "-O3", "--compilation-config.mode=3", "--compilation-config", '{"mode": 3}'),
        ("--enforce-eag", "--seed", "-1"),  # shortened, and a value that begins with a hyphen
    ],
)
def test_the_flags_of_vllm_are_known_in_each_way_to_write_them(flags: tuple[str, ...]) -> None:
    assert list(unknown_flags(flags, VLLM)) == []


def test_the_flags_of_llama_cpp_are_known_by_both_names() -> None:
    flags = ("-np", "4", "--threads", "2", "-ctk", "q8_0", "--n-gpu-layers", "99", "--no-webui", "-1")

    assert list(unknown_flags(flags, LLAMA_CPP)) == []


@pytest.mark.parametrize(
    ("flags", "known", "said"),
    [
        (("--max-num-seq", "4", "--no-such"), VLLM, "--no-such is not a flag of this engine"),
        (("--tensor-paralel-size", "8"), VLLM, "did you mean --tensor-parallel-size"),
        (
            ("--max_num_sequences=8",),
            VLLM,
            "--max_num_sequences is not a flag of this engine: did you mean --max-num-seqs",
        ),
        (("--parallell", "4"), LLAMA_CPP, "--parallell is not a flag of this engine: did you mean --parallel"),
        (("--tensor-parallel-size", "2"), LLAMA_CPP, "--tensor-parallel-size is not a flag of this engine"),
    ],
)
def test_an_unknown_flag_is_named_with_the_nearest(flags: tuple[str, ...], known: frozenset[str], said: str) -> None:
    (found,) = unknown_flags(flags, known)

    assert said in found
