"""Speculative decoding of a run of our own, by its engine's flags and the server's counters."""

from collections.abc import Mapping

from bench.audit.claim import ClaimedConfig
from bench.engines.by_name import ENGINES
from bench.engines.config import parse_flags
from bench.record import RunRecord

# The flags that switch it on, each by a value: those of vLLM, SGLang and llama.cpp, by their helps.
FLAGS = (
    *("--speculative-config", "-sc", "--spec-method", "--spec-model"),
    *("--speculative-algorithm", "--speculative-draft-model-path"),
    *("--spec-type", "--spec-draft-model", "--model-draft", "-md"),
    *("--spec-draft-hf", "--hf-repo-draft", "-hfd", "-hfrd"),
)
OFF = ("none", "null")


def speculation(record: RunRecord, deltas: Mapping[str, float]) -> ClaimedConfig:
    """Whether a step may give a sequence several tokens, and how many it gave in the mean.

    Each step of a sequence gives one token of the model and those of its draft that the model accepts. So G generated
    tokens of which A were accepted drafts took G - A steps, whether or not each step had a draft.
    """
    flags = parse_flags(record.server.argv if record.server is not None else record.asked.engine.flags)
    sampled = ENGINES[record.asked.engine.name].SAMPLED
    accepted, generated = (deltas.get(sampled.get(name, "")) for name in ("spec_accepted_tokens", "generation_tokens"))
    named = [value for name, value in flags.items() if name.partition(".")[0] in FLAGS]
    is_on = any(value.lower() not in OFF for value in named) or bool(accepted)
    if not is_on:
        return ClaimedConfig()
    if accepted is None or generated is None or not 0 <= accepted < generated:
        return ClaimedConfig(is_speculative=True)
    return ClaimedConfig(is_speculative=True, spec_tokens_per_step=generated / (generated - accepted))
