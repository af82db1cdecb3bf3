"""Whether the engine's own times of its start fit into the time that we measured."""

from bench import evidence_columns as ev
from bench.audit.rules import Evidence
from bench.record import RunRecord
from bench.server_facts import ServerFacts


def start_excess_s(server: ServerFacts) -> float | None:
    """Seconds by which the phases of a start are longer than the start by our own clock; negative: they fit.

    None where no phase is known.
    """
    if server.start is None or server.cold_start_s is None or not server.start.phases:
        return None
    return sum(server.start.phases.values()) - server.cold_start_s


def start_evidence(record: RunRecord) -> Evidence:
    """Empty for a server that the night did not start."""
    return {} if record.server is None else {ev.START_EXCESS_S: start_excess_s(record.server)}
