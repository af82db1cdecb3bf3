"""What is known of a server that already ran when the night began: how it is reached, and what it takes."""

from collections.abc import Mapping
from dataclasses import dataclass

from bench.loadgen.drivers.target import ClientHost
from bench.server_facts import EndpointFacts
from infra.engines.http_client import Origin


@dataclass(frozen=True)
class Attached:
    """A server that is not ours: no process, no log, no port of this host."""

    origin: Origin
    health: str  # the page that shows whether it still answers
    has_metrics: bool
    body: Mapping[str, object]  # what each measured request asks for beside its prompt and length
    facts: EndpointFacts
    hosts: tuple[ClientHost, ...] = ()  # that send its load; none: this one
