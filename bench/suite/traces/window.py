"""The part of a trace that a scenario replays: from which moment, how many requests, how much faster."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count as numbers

from bench.errors import SuiteError
from bench.suite.traces.row import TraceRow

Part = tuple[str, int]  # of a prompt: its id, and how many tokens of its content


@dataclass(frozen=True, slots=True)
class Window:
    """What is replayed: `count` requests from `from_s` after the first arrival on, `speed` times as fast.

    `isl` and `osl` are the most tokens that a prompt and an answer may have, and the length of all if the trace has no
    lengths.
    """

    count: int
    isl: int
    osl: int
    from_s: float = 0.0
    speed: float = 1.0


@dataclass(frozen=True, slots=True)
class Replayed:
    """One request as it is replayed. Equal parts of two prompts have equal content as far as the shorter reaches."""

    at_s: float  # from the first of the window; of a later turn: when its session begins
    output_tokens: int
    parts: tuple[Part, ...]
    session: int | None = None
    turn: int | None = None
    pause_s: float = 0.0  # after the answer to the turn before

    @property
    def input_tokens(self) -> int:
        """The length of the whole prompt."""
        return sum(tokens for _id, tokens in self.parts)


@dataclass(slots=True)
class _Session:
    """The turns of one session so far."""

    at_s: float
    number: int | None
    turns: list[Replayed] = field(default_factory=list)
    history: list[Part] = field(default_factory=list)


def replayed(rows: Iterable[TraceRow], where: str, window: Window) -> tuple[Replayed, ...]:
    """The requests of the window, those of a session side by side; reads no row after the last of them.

    Raises SuiteError with file and line for an arrival before the previous one and for a request that is too long, and
    if the trace ends too early.
    """
    names = numbers()
    sessions: dict[str | int, _Session] = {}
    taken = 0
    for row, at_s in _in_window(rows, window):
        is_new = row.session is None or (row.session not in sessions and row.at_s is not None)
        if is_new:
            number = None if row.session is None else len(sessions)
            session = sessions[next(names) if row.session is None else row.session] = _Session(
                at_s / window.speed, number
            )
        elif row.session in sessions:
            session = sessions[row.session]
        else:
            continue  # its session began before the window
        _append(session, row, window, next(names))
        taken += 1
        if taken == window.count:
            return tuple(turn for session in sessions.values() for turn in session.turns)
    raise SuiteError(
        f"{where}: has {taken} arrivals, but the scenario sends {window.count} requests, warm-up included: "
        "give a longer trace or fewer requests"
    )


def _in_window(rows: Iterable[TraceRow], window: Window) -> Iterator[tuple[TraceRow, float]]:
    """Each row from the window's begin on, with its time since the first arrival in it."""
    first_s = before_s = begin_s = None
    for row in rows:
        if row.at_s is not None:
            if before_s is not None and row.at_s < before_s:
                raise SuiteError(
                    f"{row.where}: {row.at_s:g} s is before the previous arrival at {before_s:g} s: sort by time"
                )
            before_s = row.at_s
            first_s = row.at_s if first_s is None else first_s
            if row.at_s < first_s + window.from_s:
                continue
            begin_s = row.at_s if begin_s is None else begin_s
        if begin_s is not None:
            yield row, (row.at_s if row.at_s is not None else begin_s) - begin_s


def _append(session: _Session, row: TraceRow, window: Window, name: int) -> None:
    """Add a row as the next turn of its session."""
    own = _parts(row, window, name)
    parts = (*session.history, *own)
    output = window.osl if row.output_tokens is None else row.output_tokens
    turn = Replayed(
        session.at_s,
        output,
        parts,
        session.number,
        None if session.number is None else len(session.turns),
        row.pause_s / window.speed,
    )
    for what, tokens, most, key in (
        ("a prompt", turn.input_tokens, window.isl, "isl"),
        ("an answer", output, window.osl, "osl"),
    ):
        if tokens > most:
            raise SuiteError(
                f"{row.where}: {what} of {tokens} tokens is longer than the scenario's {key} of {most}: "
                f"raise {key}, and engine.max_model_len if needed, or leave such requests out of the trace"
            )
    session.turns.append(turn)
    if row.adds_to_session:
        session.history += [*own, (f"answer {name}", output)]


def _parts(row: TraceRow, window: Window, name: int) -> tuple[Part, ...]:
    """The parts of a row's own prompt: its blocks, else one that no other prompt has."""
    length = window.isl if row.input_tokens is None else row.input_tokens
    if not row.blocks:
        return ((f"prompt {name}", length),)
    last = length - row.block_tokens * (len(row.blocks) - 1)
    sizes = [row.block_tokens] * (len(row.blocks) - 1) + [last]
    return tuple((f"block {block}", size) for block, size in zip(row.blocks, sizes, strict=True))
