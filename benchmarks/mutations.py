"""Which errors in a result file the audit finds: one number is changed in a good file of each format, again and again.

`python -m benchmarks.mutations` prints what it finds by format and by rule, and each number whose error it does not
find, with the reason that nothing in the file contradicts it (benchmarks/alone.toml).
"""

import json
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from bench.audit.claim import Claim
from bench.audit.judge import group_evidence, judge_claim, row_evidence
from bench.errors import NightbenchError
from benchmarks.bars import Bar, Benchmark, Measured
from benchmarks.mutated_files import mutable
from warehouse.importers import read_claims
from warehouse.importers.parsing.document import read_document
from warehouse.rows.catalog_subject import subject_of

ROOT = Path(__file__).parents[1]
FORMATS = ROOT / "tests/data/formats"
ALONE = Path(__file__).with_name("alone.toml")
FOUND = Bar(
    "mutations.found", "mutations found where a file says a number twice", "%", 0.95, "at least", is_portable=True
)
ENDINGS = {".json", ".jsonl", ".yaml", ".csv", ".txt"}
Doubts = frozenset[tuple[int, str]]


@dataclass(frozen=True)
class Outcome:
    """One mutation of one number: the rules that spoke of it, or why none can."""

    format: str
    file: str
    number: str  # its place in the file
    mutation: str
    rules: tuple[str, ...]
    alone: str = ""


@dataclass(frozen=True)
class Reason:
    """Why no rule can find an error in these numbers of a format."""

    format: str
    number: str  # a regular expression of the whole place
    why: str
    mutations: str = ".*"

    def covers(self, outcome: Outcome) -> bool:
        """Whether it is about this one."""
        return (
            re.fullmatch(self.format, outcome.format) is not None
            and re.fullmatch(self.number, outcome.number) is not None
            and re.fullmatch(self.mutations, outcome.mutation) is not None
        )


@dataclass(frozen=True)
class Judged:
    """What the audit reads and says of a text."""

    path: Path
    text: str

    @cached_property
    def claims(self) -> Sequence[Claim]:
        """Its claims; none where it cannot be read."""

        def beside(name: str) -> bytes | None:
            other = self.path.parent / name
            return other.read_bytes() if other.is_file() else None

        names = sorted(each.name for each in self.path.parent.iterdir())
        try:
            return list(read_claims(read_document(self.path.name, self.text.encode(), beside, names)))
        except NightbenchError:
            return ()

    @property
    def numbers(self) -> str:
        """All that was read, for a comparison: a cell named because it was not read is none of it."""
        known = [replace(claim, lineage=replace(claim.lineage, sha256="")) for claim in self.claims]
        read = [replace(claim, unread={}, not_read=(), label="") for claim in known]
        return json.dumps([asdict(claim) for claim in read], default=_plain)

    @property
    def doubts(self) -> Doubts:
        """Rules that speak, each with the claim; a file that cannot be read has one of its own."""
        if not self.claims:
            return frozenset({(0, "unreadable")})
        together = group_evidence(self.claims)
        pairs = zip(self.claims, together, strict=True)
        judged = [judge_claim(claim, row_evidence(claim, subject_of(claim)) | more) for claim, more in pairs]
        return frozenset(
            (at, finding.code)
            for at, each in enumerate(judged)
            for finding in each.findings
            if finding.status in ("WARN", "FAIL")
        )


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else sorted(value)


def outcomes(path: Path, reasons: Sequence[Reason]) -> Iterator[Outcome]:
    """Every mutation of every number that the audit reads in a file."""
    file = mutable(path)
    good = Judged(path, file.text)
    numbers, doubts = good.numbers, good.doubts
    for mutation in file.mutations():
        spoiled = Judged(path, mutation.text)
        if spoiled.numbers == numbers:
            continue
        found = tuple(sorted({code for _, code in spoiled.doubts - doubts}))
        outcome = Outcome(path.parent.name, path.name, mutation.number, mutation.kind, found)
        why = next((reason.why for reason in reasons if reason.covers(outcome)), "")
        yield replace(outcome, alone=why)


def measured_outcomes() -> list[Outcome]:
    """Every outcome of every good file."""
    reasons = [Reason(**reason) for reason in tomllib.loads(ALONE.read_text("utf-8"))["alone"]]
    files = sorted(path for path in FORMATS.glob("*/*.*") if path.suffix in ENDINGS and path.parent.name != "telemetry")
    return [outcome for path in files for outcome in outcomes(path, reasons)]


def measure() -> Mapping[str, Measured]:
    """The share that is found of the mutations that a file contradicts."""
    told_twice = [one for one in measured_outcomes() if one.rules or not one.alone]
    return {FOUND.name: Measured(sum(bool(one.rules) for one in told_twice) / len(told_twice))}


def lines(found: Sequence[Outcome]) -> Iterator[str]:
    """Shares by format and kind, what each rule found, and the rest with its reason."""
    formats: dict[str, list[Outcome]] = defaultdict(list)
    for one in found:
        formats[one.format].append(one)
    for name, of_format in formats.items():
        yield f"{name}: {_share([one for one in of_format if one.rules or not one.alone])} of what is told twice"
        kinds: dict[str, list[Outcome]] = defaultdict(list)
        for one in of_format:
            kinds[one.mutation].append(one)
        yield "  of all: " + ", ".join(f"{kind} {_share(of_kind)}" for kind, of_kind in kinds.items())
        rules = Counter(rule for one in of_format for rule in one.rules)
        yield "  by rule: " + ", ".join(f"{rule} {count}" for rule, count in rules.most_common())
        yield from _not_found(of_format)


def _share(of: Sequence[Outcome]) -> str:
    return f"{sum(bool(one.rules) for one in of)} of {len(of)}"


def _not_found(of_format: Sequence[Outcome]) -> Iterator[str]:
    lost: dict[tuple[str, str], list[str]] = defaultdict(list)
    for one in of_format:
        if not one.rules:
            lost[one.alone or "MISSED, though the file tells it twice", one.mutation].append(f"{one.file} {one.number}")
    for (why, kind), numbers in lost.items():
        yield f"  not found, {kind}: {why}: {', '.join(numbers)}"


BENCHMARK = Benchmark("mutations", (FOUND,), measure, is_slow=True)


if __name__ == "__main__":
    print("\n".join(lines(measured_outcomes())))
