"""The CSV of the Azure LLM inference traces of 2023 and 2024 (Azure/AzurePublicDataset): times and lengths."""

import csv
from collections.abc import Iterator
from datetime import UTC, datetime

from bench.errors import SuiteError
from bench.suite.traces.row import TraceRow, rows_of, tokens

COLUMNS = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
MICROSECOND_DIGITS = 6  # the traces have seven digits of a second, which Python does not read


def read(lines: Iterator[str], where: str) -> Iterator[TraceRow]:
    """Its rows; prompts share nothing, since the trace has no hashes."""
    reader = csv.DictReader(lines)
    missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
    if missing:
        raise SuiteError(f"{where}:1: the column {missing[0]} is missing: not an Azure LLM inference trace")
    for row in rows_of(reader, where):
        at = f"{where}:{reader.line_num}"
        time, context, generated = (row[name] for name in COLUMNS)
        yield TraceRow(at, _epoch_s(time, at), tokens(context, COLUMNS[1], at), tokens(generated, COLUMNS[2], at))


def _epoch_s(text: str | None, at: str) -> float:
    """Seconds of the Unix epoch; a time without a zone counts as UTC, since only differences matter."""
    try:
        whole, _, rest = (text or "").strip().partition(".")
        digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
        fraction = f".{digits[:MICROSECOND_DIGITS]}" if digits else ""
        time = datetime.fromisoformat(whole + fraction + rest[len(digits) :])
    except ValueError as error:
        raise SuiteError(f"{at}: TIMESTAMP must be a date and time, not {text!r}") from error
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
