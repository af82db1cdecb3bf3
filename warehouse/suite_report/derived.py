"""Metrics of a report that follow from columns of the measurements."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from warehouse.schema.row import Row


def _total_throughput(row: Row) -> float | None:
    """Tokens of prompts and answers per second: the output's rate times its share of all tokens, inverted."""
    rate, into, out = (row.get(f"{name}") for name in ("output_throughput_tok_per_s", *_TOKENS))
    return None if rate is None or into is None or not out else float(rate) * (1 + float(into) / float(out))


def _success(row: Row) -> float | None:
    completed, failed = row.get("completed"), row.get("failed")
    return None if completed is None or failed is None or completed + failed == 0 else completed / (completed + failed)


_TOKENS = ("total_input_tokens", "total_output_tokens")
DERIVED: Mapping[str, Callable[[Row], float | None]] = MappingProxyType(
    {"total_throughput_tok_per_s": _total_throughput, "success_share": _success}
)
