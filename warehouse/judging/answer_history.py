"""Compare the answers of a night's servers with those of the nights before it.

Only nights with an earlier name count, those of this data folder and those that only the lake has: loading them one by
one gives the same result as `rebuild`. If a night is loaded after a later one, or again with other answers, the later
nights of this data folder are loaded again.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median

import pyarrow.parquet as pq

from bench import evidence_columns as ev
from bench.audit.rules import judge
from bench.audit.rules.answers import ANSWER_RULES
from bench.quality.answers import GREEDY_TOKENS, Greedy, agreed_share, fall
from warehouse.lake.lake import STAGING, partition
from warehouse.rows.run_folder import nights
from warehouse.schema.columns import Table
from warehouse.schema.row import Row
from warehouse.views.tables import PART, nights_in

NIGHTS = 5  # the latest ones: one undetected outlier does not move a median of five
LOOK_BACK = 100  # nights: limits the time of a load as the lake grows
_EVIDENCE = [rule.column for rule in ANSWER_RULES]
_HARDWARE = ("server_id", "gpus", "cpu_model")
_READ = ["quality_id", "verdict", *_HARDWARE, "logprob_mean_before", "greedy_tokens", *_EVIDENCE]
FIRST = "first night with these weights and flags"


def earlier_files(
    lake: Path, data: Path, night: str, table: Table = "measurements", gone: Collection[str] = ()
) -> Iterator[Path]:
    """The files of a table of earlier nights but those that are `gone`, latest first; the staged file if there is one.

    They are the nights of this data folder and those that only the lake has, which other computers loaded.
    """
    known = {*nights(data), *nights_in(lake / "measurements")}
    for name in sorted((name for name in known if name < night and name not in gone), reverse=True)[:LOOK_BACK]:
        found = file_of(lake, name, table)
        if found is not None:
            yield found


def file_of(lake: Path, night: str, table: Table = "measurements") -> Path | None:
    """The file of a table and night: staged, else loaded; None if there is neither."""
    places = (partition(root, table, night) / PART for root in (lake / STAGING, lake))
    return next((place for place in places if place.exists()), None)


def compare(rows: Sequence[Row], files: Iterable[Path]) -> list[Row]:
    """The rows, compared with the answers of earlier nights; `files` are those nights' measurements, latest first."""
    found: dict[str, list[list[Row]]] = {row["quality_id"]: [] for row in rows if row["quality_id"] is not None}
    for path in files:
        if all(len(before) == NIGHTS for before in found.values()):
            break
        for series, told in _sound(path).items():
            if series in found and len(found[series]) < NIGHTS:
                found[series].append(told)
    return [row if row["quality_id"] is None else row | _compared(row, found[row["quality_id"]]) for row in rows]


def _sound(path: Path) -> dict[str, list[Row]]:
    """A night's rows whose answers passed every rule, by quality id."""
    found: dict[str, list[Row]] = {}
    for row in read_answers(path):
        is_doubted = any(judge(rule, row[rule.column]) in ("WARN", "FAIL") for rule in ANSWER_RULES)
        if row["verdict"] != "rejected" and not is_doubted:
            found.setdefault(row["quality_id"], []).append(row)
    return found


def read_answers(path: Path | None) -> list[Row]:
    """The answers in a night's measurements; empty if none were recorded or the file is missing."""
    if path is None:
        return []
    with pq.ParquetFile(path) as file:
        if not set(_READ) <= set(file.schema_arrow.names):
            return []
        rows: list[Row] = file.read(columns=_READ).to_pylist()
    return [row for row in rows if row["quality_id"] is not None]


def _compared(row: Row, before: Sequence[Sequence[Row]]) -> Row:
    by_night = [
        [row["logprob_mean_before"] for row in told if row["logprob_mean_before"] is not None] for told in before
    ]
    means = [median(of_night) for of_night in by_night if of_night]
    fallen = fall((row["logprob_mean_before"], row["logprob_mean_after"]), means)
    agreed = _agreed_earlier(row, before)
    return {
        "logprob_mean_earlier": median(means) if means else None,
        "earlier_night_count": len(means),
        ev.LOGPROB_FALL: fallen,
        ev.GREEDY_AGREED_EARLIER_SHARE: agreed,
        "quality_not_compared": None if fallen is not None else row["quality_not_checked"] or FIRST,
        "greedy_not_compared": None
        if agreed is not None
        else row["quality_not_checked"] or f"{FIRST}, server and hardware",
    }


def _agreed_earlier(row: Row, before: Sequence[Sequence[Row]]) -> float | None:
    """The best agreement of greedy tokens with a run of the latest night on the same server and hardware."""
    for told in before:
        same = [other for other in told if all(other[name] == row[name] for name in _HARDWARE)]
        shares = [agreed_share(_by_prompt(row), _by_prompt(other)) for other in same]
        known = [share for share in shares if share is not None]
        if known:
            return max(known)
    return None


def _by_prompt(row: Mapping[str, Sequence[int] | None]) -> Greedy:
    tokens = row["greedy_tokens"] or []
    return [tokens[at : at + GREEDY_TOKENS] for at in range(0, len(tokens), GREEDY_TOKENS)]


def later_compared(lake: Path, data: Path, night: str) -> list[str]:
    """The later nights that were compared with this one, if its staged answers differ from its loaded ones."""
    was = read_answers(if_there(partition(lake, "measurements", night) / PART))
    now = read_answers(file_of(lake, night))
    if was == now:
        return []
    touched = {row["quality_id"] for row in (*was, *now)}
    later = [name for name in nights(data) if name > night]
    return [name for name in later if touched & {row["quality_id"] for row in read_answers(file_of(lake, name))}]


def if_there(path: Path) -> Path | None:
    """The path if the file exists, else None."""
    return path if path.exists() else None
