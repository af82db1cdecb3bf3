"""Small copies of what the tools wrote, for the tests: without texts, histograms and the places of this computer."""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import yaml

# Long, and read by no importer: texts, densities, routes, counts of pictures, what a library says of itself.
LEFT_OUT = frozenset(
    (
        *("pdf", "request_args", "output", "api_routes", "environment", "warnings", "platform", "percentile_cis"),
        *("scheduler_state", "input_metrics", "output_metrics", "timings", "settings"),
        *("payloads", "packets", "prompt", "warmup_metrics", "chunk_times"),
        *("slo_attainment", "text", "time_to_last_round_trip_ms", "avg_round_trip_time_ms", "generation_delay"),
    )
)
LEFT_OUT_FAMILIES = ("http_req_", "effective_", "active_")  # metrics of connections, and of every moment
LINES_MAX = 40  # of a table
RAW = "_raw.jsonl"  # one line shows the form
PLACE = "/twin"
_KERNEL = re.compile(r"\b(Linux)-[\w.+-]+")


def keep_twin(folder: Path, into: Path, places: Sequence[Path]) -> None:
    """Write a copy of each file of `folder` that a test can read, with `places` replaced."""
    for file in sorted(folder.rglob("*")):
        if file.is_file() and file.suffix in WRITERS and not file.name.startswith("."):
            copy = into / file.relative_to(folder)
            copy.parent.mkdir(parents=True, exist_ok=True)
            lines = file.read_text().splitlines(keepends=True)
            text = "".join(lines[:1] if file.name.endswith(RAW) else lines)
            copy.write_text(without(WRITERS[file.suffix](text), places))


def without(text: str, places: Sequence[Path]) -> str:
    """The text with another name for each of these places."""
    there = re.sub("|".join(re.escape(str(place)) for place in places), PLACE, text) if places else text
    return _KERNEL.sub(r"\1", there)


def cut(value: Any) -> Any:
    """The value less what is left out, and less the empty fields of each object inside a list."""
    if isinstance(value, dict):
        return {key: cut(inside) for key, inside in value.items() if is_kept(key)}
    if isinstance(value, list):
        return [_filled(cut(inside)) for inside in value]
    return value


def is_kept(key: str) -> bool:
    """Whether a field is part of a twin."""
    return key not in LEFT_OUT and not key.startswith(LEFT_OUT_FAMILIES)


def _filled(value: Any) -> Any:
    """The object without fields that are null, at any depth."""
    if not isinstance(value, dict):
        return value
    return {key: _filled(inside) for key, inside in value.items() if inside is not None}


def _json(text: str) -> str:
    return json.dumps(cut(json.loads(text)), separators=(",", ":")) + "\n"


def _lines(text: str) -> str:
    return "".join(_json(line) for line in text.splitlines())


def _yaml(text: str) -> str:
    return yaml.safe_dump(cut(yaml.safe_load(text)))


def _table(text: str) -> str:
    return "".join(text.splitlines(keepends=True)[:LINES_MAX])


WRITERS: dict[str, Callable[[str], str]] = {".json": _json, ".jsonl": _lines, ".yaml": _yaml, ".csv": _table}
