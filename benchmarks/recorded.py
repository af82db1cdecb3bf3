"""The last recorded run of every bar: benchmarks/bars.json, written by `python -m benchmarks --record` only."""

import json
import subprocess
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from pydantic import TypeAdapter

from benchmarks.bars import Host, Line, Recorded
from infra.hardware.host_facts import read_host

ROOT = Path(__file__).parents[1]
FILE = Path(__file__).with_name("bars.json")
_ALL = TypeAdapter(dict[str, Recorded])


def this_host() -> Host:
    """The host that this process runs on."""
    facts = read_host()
    return Host(cpu_model=facts.cpu_model, cores=facts.cpu_count, kernel=facts.kernel.partition("-")[0])


def read_recorded(file: Path = FILE) -> dict[str, Recorded]:
    """Every bar's recorded run by its name; nothing where the file does not exist."""
    return _ALL.validate_json(file.read_bytes()) if file.exists() else {}


def record(lines: Iterable[Line], host: Host, file: Path = FILE) -> None:
    """Replace the recorded runs of the bars that have a value; the others stay."""
    today, commit = datetime.now(UTC).date(), git_commit()
    recorded = read_recorded(file)
    for line in lines:
        if line.now is None:
            continue
        source = line.now.source
        recorded[line.bar.name] = Recorded(
            value=_rounded(line.now.value),
            ratio=None if line.now.ratio is None else _rounded(line.now.ratio),
            limit=line.bar.limit,
            is_met=line.bar.is_met(line.now.value),
            measured_on=source.measured_on if source else today,
            commit=commit,
            host=(source.host if source else None) or host,
        )
    write(recorded, file)


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")


def write(recorded: Mapping[str, Recorded], file: Path = FILE) -> None:
    """Write the whole file, or leave what was there."""
    values = {name: recorded[name].model_dump(mode="json") for name in sorted(recorded)}
    partial = file.with_name(f".{file.name}.tmp")
    partial.write_text(json.dumps(values, indent=1) + "\n")
    partial.replace(file)


def git_commit() -> str | None:
    """The commit of this checkout, with `-dirty` where files differ from it; None outside a git checkout."""
    argv = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return done.stdout.strip() or None
