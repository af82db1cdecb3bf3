"""Which nights a history has, and in which order: rounds of every release, drawn at random."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.engines import llama_cpp, vllm
from benchmarks.recorded import ROOT
from infra.engines.releases import locked_releases, locked_tags

SEED = 20261126
SUITES: Mapping[str, Path] = {
    vllm.NAME: ROOT / "suites" / "history.toml",
    llama_cpp.NAME: ROOT / "suites" / "history-llama-cpp.toml",
}


@dataclass(frozen=True)
class PlannedNight:
    """One night; `is_aa`: the round has another one of the same release, and whatever differs between them is noise."""

    round: int
    engine: str
    release: str
    is_aa: bool = False


def known_releases() -> dict[str, list[str]]:
    """The releases of each engine that have a lock, oldest first."""
    return {vllm.NAME: list(locked_releases()), llama_cpp.NAME: list(locked_tags())}


def planned(rounds: int, releases: Mapping[str, Sequence[str]], seed: int = SEED) -> list[PlannedNight]:
    """All nights of so many rounds, in their order.

    A round has a night of every release and one more of each engine's newest, the A/A night. It is shuffled by itself,
    so that a host that drifts moves the releases alike, and a history that is continued keeps its earlier nights.
    """
    nights: list[PlannedNight] = []
    for at in range(rounds):
        own = [PlannedNight(at, engine, release) for engine, each in releases.items() for release in each]
        own += [PlannedNight(at, engine, each[-1], is_aa=True) for engine, each in releases.items() if each]
        random.Random(f"{seed} {at}").shuffle(own)  # noqa: S311 - an order, not a secret
        nights += own
    return nights
