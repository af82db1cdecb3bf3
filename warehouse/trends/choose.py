"""What a text on the command line chooses of the warehouse: a night, a version, a suite, a variant, a machine."""

import glob
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from bench.errors import UsageError
from bench.trends.series import STACK_FIELDS
from bench.trends.sides import Facts, Side
from bench.wording import counted
from warehouse.lake.query import ask

# What a text without `=` may be. The last two only where it is nothing else: a machine may be called as a suite is.
BARE = ("night", "engine_version", "gpu", "suite", "variant", "machine", "image")
_LAST = frozenset({"machine", "image"})
_MORE = ("engine", "model", "precision", "parallelism", "scenario", "client", "source", "lease_id")
KEYS = tuple(dict.fromkeys((*BARE, *_MORE, *STACK_FIELDS)))

_VERDICTS = """
SELECT verdict, count(*), max(night) FROM measurements
WHERE is_control IS NOT TRUE AND list_contains(
    [night, engine_version_found, suite, gpus[1], coalesce(machine, machine_kind), image_digest], $1
)
GROUP BY verdict ORDER BY verdict
"""


def choose_measured(data: Path, text: str, facts: Sequence[Facts]) -> Side:
    """The side of a text, as `choose_side` finds it; where all its measurements are in doubt, the error says so."""
    try:
        return choose_side(text, facts)
    except UsageError as error:
        why = _why_left_out(data, text)
        if why is None:
            raise
        raise UsageError(why) from error


def _why_left_out(data: Path, text: str) -> str | None:
    """Why nothing of a text is compared, though the warehouse has measurements of it; None where it has none."""
    name = text.partition("=")[2] or text
    rows = ask(data, _VERDICTS, (name,)).rows
    counts = {verdict: count for verdict, count, _ in rows}
    if not counts or "accepted" in counts:
        return None
    verdicts = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    total = counted(sum(counts.values()), "run")
    why = f"`nightbench sql \"FROM findings_worst WHERE night = '{max(night for *_, night in rows)}'\"` says why"
    return f"{text} has {total} in the warehouse and none counts ({verdicts}): {why}"


def choose_side(text: str, facts: Sequence[Facts]) -> Side:
    """The side of a text such as `0.12.0` or `gpu=MI300X,engine_version=0.12*`, where these are the facts known.

    Raises UsageError, with the nearest names, where it is ambiguous, has an unknown key or matches nothing.
    """
    side = Side(text, _patterns(text) if "=" in text else {_key_of(text, facts): glob.escape(text)})
    if any(side.has(one) for one in facts):
        return side
    for name, pattern in side.patterns.items():
        if not any(Side(text, {name: pattern}).has(one) for one in facts):
            raise UsageError(f"{text}: no accepted measurement has {name}={pattern}; {_near(pattern, [name], facts)}")
    raise UsageError(f"{text}: no accepted measurement has all of these; take one away")


def _patterns(text: str) -> dict[str, str]:
    pairs = [part.partition("=") for part in text.split(",")]
    for name, sign, pattern in pairs:
        if name.strip() not in KEYS or not sign or not pattern.strip():
            close = get_close_matches(name.strip(), KEYS, n=1) or ["engine_version"]
            raise UsageError(
                f"{text}: {name.strip()!r} is not a key with a value; write {close[0]}=VALUE; keys: {', '.join(KEYS)}"
            )
    return {name.strip(): pattern.strip() for name, _, pattern in pairs}


def _key_of(text: str, facts: Sequence[Facts]) -> str:
    known = {name: _values(name, facts) for name in BARE}
    found = [name for name in BARE if text in known[name]]
    if not found:
        raise UsageError(
            f"{text!r} is not a night, engine version, GPU, suite, variant, machine or image of the warehouse; "
            f"{_near(text, BARE, facts)}"
        )
    if set(found) == {"variant", "machine"}:
        return "machine"  # whose name the scenarios have as a tag
    found = [name for name in found if name not in _LAST] or found
    if len(found) > 1:
        raise UsageError(f"{text!r} is ambiguous: write {' or '.join(f'{name}={text}' for name in found)}")
    return found[0]


def _values(name: str, facts: Sequence[Facts]) -> set[str]:
    return {value for one in facts for value in one.get(name, "").split("\n") if value}


def _near(text: str, names: Sequence[str], facts: Sequence[Facts]) -> str:
    known = sorted({value for name in names for value in _values(name, facts)})
    close = get_close_matches(text, known, n=3, cutoff=0.4) or known[-3:]
    if not close:
        return "the warehouse has no such value: run a night, or import results with `nightbench import --history FILE`"
    return f"nearest: {', '.join(close)}"
