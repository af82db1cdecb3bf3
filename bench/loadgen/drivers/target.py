"""What a load driver is pointed at, and what a night gives it beside the scenario."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench.plan import ConversationShare
from bench.suite.traces.window import Replayed


@dataclass(frozen=True)
class ClientHost:
    """A host that sends a share of the load: its name, and the argv to which a shell's command is added."""

    name: str
    argv: tuple[str, ...]


@dataclass(frozen=True)
class LoadTarget:
    """Where the load goes: the server's address, the served name, its folder (for a tokenizer) and vocabulary.

    `body` is what each of the meter's requests asks for beside prompt and length. `keeps_connections`: whether a
    connection can carry a further request; else each request opens its own.
    """

    base_url: str
    served_model: str
    model_path: Path
    vocab_size: int
    body: Mapping[str, object] = field(default_factory=dict)
    keeps_connections: bool = True
    ca_file: str | None = None  # of the CAs that may sign the server's certificate; None: the system's
    api_key_env: str | None = None  # the variable with the key that each request carries
    hosts: tuple[ClientHost, ...] = ()  # that share the load; none: the computer that measures
    cache_block_tokens: int | None = None  # the prefix cache has whole blocks of so many; None: not known


@dataclass(frozen=True)
class RunInputs:
    """What a night gives a run beside its scenario and seed: a trace's requests, its part of recorded conversations."""

    trace: tuple[Replayed, ...] | None = None
    conversations: ConversationShare | None = None


NOTHING_GIVEN = RunInputs()
