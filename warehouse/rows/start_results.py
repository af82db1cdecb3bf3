"""Where the time of a server's start went, in columns."""

from bench.audit.start import start_excess_s
from bench.server_facts import ServerFacts
from warehouse.schema.row import Row


def of_start(server: ServerFacts) -> Row:
    """The columns of a server's start; empty for a server that the night did not start."""
    start, whole_s = server.start, server.cold_start_s
    if start is None:
        return {}
    excess_s = start_excess_s(server)
    row: Row = {
        "server_started_at": start.started_at,
        "compile_cache": start.compile_cache,
        "start_not_read": "; ".join(start.unread) or None,
        "start_other_s": None if excess_s is None else -excess_s,
        **{f"start_{name}": seconds for name, seconds in start.phases.items()},
    }
    if start.compile_cache in ("cold", "warm"):
        row |= {
            f"{start.compile_cache}_startup_s": whole_s,
            f"{start.compile_cache}_compilation_s": start.compilation_s,
        }
    return row
