"""A command as a driver: its metrics, read from what it printed and wrote by the rules of the suite."""

import csv
import io
import json
import math
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.errors import LoadDriverError, UnreadableResultError
from bench.suite.command import SIGNED_UNITS, Command, MetricRule
from bench.suite.workload import COMMAND

NAME = COMMAND
METRICS_FILE = "metrics.json"
REPORT_FILES = (METRICS_FILE,)
ENGINE: str | None = None  # it needs none


@dataclass(frozen=True)
class CommandOutput:
    """What a command printed, and the files that rules name, by their path.

    Where bytes were dropped, `log` is only what was printed after them.
    """

    log: str
    dropped_bytes: int = 0
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class CommandMetric:
    """One metric of one run, in its own unit; the statistics are over the values after the warm-up."""

    name: str
    unit: str
    value: float
    samples: int
    mean: float
    stdev: float | None  # None for one value
    low: float
    high: float


def read_metrics(command: Command, output: CommandOutput) -> tuple[CommandMetric, ...]:
    """Every metric of a command; LoadDriverError names the first rule that does not fit its output."""
    return tuple(_metric(rule, output) for rule in command.metrics)


def read_kept(parts: Sequence[bytes]) -> tuple[CommandMetric, ...]:
    """The metrics that a run kept; raises UnreadableResultError where the file is none of them."""
    try:
        return tuple(CommandMetric(**one) for one in json.loads(parts[0]))
    except (ValueError, TypeError) as error:
        raise UnreadableResultError(f"{METRICS_FILE} cannot be read: {error}") from error


def _metric(rule: MetricRule, output: CommandOutput) -> CommandMetric:
    place = rule.file or "the log"
    _require_whole(rule, output)
    words = _words_of_log(rule, output) if rule.column is None else _words_of_table(rule, _text(rule, output))
    if not words:
        how = f"the pattern {rule.pattern!r}" if rule.column is None else f"the selection {rule.where} of {rule.column}"
        raise LoadDriverError(f"the metric {rule.name}: {how} matches nothing in {place}: correct the rule")
    if rule.must_match_once and len(words) > 1:
        raise LoadDriverError(
            f"the metric {rule.name} matches {len(words)} times in {place}, and must match once: correct the rule"
        )
    # What was dropped holds the warm-up, and values without which no statistic but the last stands.
    is_whole = rule.file is not None or not output.dropped_bytes
    values = [_number(rule, word, place) for word in (words[rule.warmup_steps :] if is_whole else words[-1:])]
    if not values:
        raise LoadDriverError(
            f"the metric {rule.name} has {len(words)} values in {place}, and {rule.warmup_steps} of them are warm-up: "
            "set a lower warmup_steps, or run more steps"
        )
    return _summary(rule, values)


def _require_whole(rule: MetricRule, output: CommandOutput) -> None:
    """Dropped output may hold further values, which a mean or a maximum would leave out without a word."""
    needs_all = rule.aggregate != "last" or rule.must_match_once
    if rule.file is None and output.dropped_bytes and needs_all:
        raise LoadDriverError(
            f"the metric {rule.name} needs every value, and {output.dropped_bytes} bytes of the log were dropped: "
            "let the command print less, or write them to a file"
        )


def _text(rule: MetricRule, output: CommandOutput) -> str:
    if rule.file is None:
        return output.log
    if rule.file not in output.files:
        raise LoadDriverError(f"the metric {rule.name}: the command did not write {rule.file}")
    return output.files[rule.file]


def _words_of_log(rule: MetricRule, output: CommandOutput) -> list[str]:
    found = re.finditer(rule.pattern or "", _text(rule, output), re.MULTILINE)
    return [match[1] for match in found if match[1] is not None]


def _words_of_table(rule: MetricRule, text: str) -> list[str]:
    rows = _rows(rule, text)
    for name in (rule.column or "", *rule.where):
        if rows and name not in rows[0]:
            raise LoadDriverError(
                f"the metric {rule.name}: {rule.file} has no column {name}: it has {', '.join(map(str, rows[0]))}"
            )
    chosen = [row for row in rows if all(str(row.get(name)) == value for name, value in rule.where.items())]
    return [str(row.get(rule.column or "")) for row in chosen]


def _rows(rule: MetricRule, text: str) -> list[dict[str, Any]]:
    if (rule.file or "").endswith(".csv"):
        return list(csv.DictReader(io.StringIO(text)))
    try:
        content = json.loads(text)
    except ValueError as error:
        raise LoadDriverError(f"the metric {rule.name}: {rule.file} cannot be read as JSON: {error}") from error
    rows = content if isinstance(content, list) else [content]
    if not all(isinstance(row, dict) for row in rows):
        raise LoadDriverError(
            f"the metric {rule.name}: {rule.file} is not a table: it must be an object or a list of them"
        )
    return rows


def _number(rule: MetricRule, word: str, place: str) -> float:
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise LoadDriverError(f"the metric {rule.name}: {word!r} in {place} is not a finite number")
    if value < 0 and rule.unit not in SIGNED_UNITS:
        raise LoadDriverError(
            f"the metric {rule.name}: {word} {rule.unit} in {place} is below zero: correct the rule or its unit"
        )
    return value


def _summary(rule: MetricRule, values: list[float]) -> CommandMetric:
    mean = statistics.fmean(values)
    return CommandMetric(
        name=rule.name,
        unit=rule.unit,
        value={"mean": mean, "last": values[-1], "max": max(values)}[rule.aggregate],
        samples=len(values),
        mean=mean,
        stdev=statistics.stdev(values) if len(values) > 1 else None,
        low=min(values),
        high=max(values),
    )
