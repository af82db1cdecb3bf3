"""A row for each kind of workload: its tokens as asked, as the server counts them, and as the tokenizer does."""

import json
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from bench.loadgen.events import read_events
from bench.metrics import Ints
from benchmarks.table import MISSING, Table
from meter.plan import parse_plan
from meter.prepare import prepare

PROGRAM = Path(__file__).with_name("tokenizer_program.py")
PATIENCE_S = 1800.0
HEAD = (
    *("kind", "requests", "prompt tokens made", "by the server", "by the tokenizer"),
    *("answer tokens requested", "by the server", "in the stream", "unlike"),
)


@dataclass(frozen=True)
class Counted:
    """The answered requests of a kind, warm-up included, and their sums of tokens.

    `prompt_made` is None where only a tokenizer knows the length; `output_asked` is the most where the answer ends by
    itself, and with `output_server` None where answers are vectors. `streamed` are the tokens that the client saw.
    `unlike`: requests of which two counts differ.
    """

    kind: str
    requests: int
    prompt_made: int | None
    prompt_server: int
    prompt_tokenizer: int
    output_asked: int | None
    output_server: int | None
    streamed: int
    unlike: int


@dataclass(frozen=True)
class Load:
    """The report of a meter, and the model that it loaded."""

    kind: str
    folder: Path
    model: Path

    @cached_property
    def head(self) -> dict[str, Any]:
        """Its meter.json."""
        found: dict[str, Any] = json.loads((self.folder / "meter.json").read_bytes())
        return found

    @cached_property
    def rows(self) -> list[Mapping[str, Any]]:
        """A row for each request."""
        return [json.loads(line) for line in (self.folder / "requests.jsonl").read_bytes().splitlines()]

    @cached_property
    def streamed(self) -> Ints:
        """The tokens in each answer's stream."""
        index, first, count = ([row[name] for row in self.rows] for name in ("index", "event_first", "event_count"))
        events = read_events(self.head, index, first, count, (self.folder / "events.bin").read_bytes())
        sums = np.concatenate(([0], np.cumsum(events.tokens, dtype=np.int64)))
        return np.asarray(sums[events.at[1:]] - sums[events.at[:-1]])

    def bodies(self) -> list[bytes]:
        """What was sent, in the order of the rows: made anew, and the same by its hash."""
        made = {one.index: one for one in prepare(parse_plan(json.dumps(self.head["plan"])), "host", "again")}
        if any(made[row["index"]].body_sha256 != row["body_sha256"] for row in self.rows):
            raise ValueError(f"{self.folder}: a prompt that was made anew is not the one that was sent")
        return [made[row["index"]].payload.partition(b"\r\n\r\n")[2] for row in self.rows]

    def failures(self) -> str:
        """How many requests ended in each way other than an answer, with the error."""
        ends = Counter(f"{row['outcome']} ({row['error']})" for row in self.rows if row["outcome"] != "ok")
        return ", ".join(f"{count} {end}" for end, count in ends.most_common())

    def counted(self, tokenized: Sequence[int]) -> Counted:
        """Compare all counts of each answered request."""
        good = [
            (row, by_tokenizer, int(streamed))
            for row, by_tokenizer, streamed in zip(self.rows, tokenized, self.streamed, strict=True)
            if row["outcome"] == "ok"
        ]
        is_form = "answers" in self.head["plan"]
        return Counted(
            kind=self.kind,
            requests=len(good),
            prompt_made=_sum(row["prompt_tokens_planned"] for row, _, _ in good),
            prompt_server=sum(row["prompt_tokens_counted"] for row, _, _ in good),
            prompt_tokenizer=sum(by_tokenizer for _, by_tokenizer, _ in good),
            output_asked=_sum(row["output_tokens_planned"] for row, _, _ in good),
            output_server=_sum(row["output_tokens_counted"] for row, _, _ in good),
            streamed=sum(streamed for _, _, streamed in good),
            unlike=sum(not is_equal(*one, ends_itself=is_form) for one in good),
        )


def _sum(counts: Iterable[int | None]) -> int | None:
    """The sum, None where one is not known."""
    found = list(counts)
    return None if None in found else sum(filter(None, found))


def is_equal(row: Mapping[str, Any], tokenized: int, streamed: int, *, ends_itself: bool) -> bool:
    """Whether all counts of a request agree; an answer that ends by itself may be shorter, and a vector has none."""
    made = row["prompt_tokens_planned"]
    prompts = {tokenized, row["prompt_tokens_counted"], tokenized if made is None else made}
    got, asked = row["output_tokens_counted"], row["output_tokens_planned"]
    if asked is None:
        return len(prompts) == 1 and not got and not streamed
    return len(prompts) == 1 and got == streamed and (got == asked or (ends_itself and got < asked))


def count_loads(loads: Sequence[Load], python: Path) -> list[Counted]:
    """A row for each load; `python` has the tokenizers' library."""
    bodies = [load.bodies() for load in loads]
    asked = [
        b'{"model": %b, "body": %b}' % (json.dumps(str(load.model)).encode(), body)
        for load, sent in zip(loads, bodies, strict=True)
        for body in sent
    ]
    counts = iter(_tokenized(asked, python))
    return [load.counted([next(counts) for _ in sent]) for load, sent in zip(loads, bodies, strict=True)]


def _tokenized(lines: Sequence[bytes], python: Path) -> list[int]:
    argv = [str(python), str(PROGRAM)]
    done = subprocess.run(argv, input=b"\n".join(lines) + b"\n", stdout=subprocess.PIPE, check=True, timeout=PATIENCE_S)
    return [int(line) for line in done.stdout.split()]


def table(rows: Sequence[Counted]) -> Table:
    """The rows in words."""
    cells = (tuple(_cell(value) for value in astuple(row)) for row in rows)
    return Table("tokens asked and got", HEAD, tuple(cells))


def _cell(value: str | int | None) -> str:
    return MISSING if value is None else f"{value:,}" if isinstance(value, int) else value
