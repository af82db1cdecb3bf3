"""Two clocks and the distance between them: durations are monotonic, kernel stamps are wall time."""

import struct
import time
from dataclasses import dataclass

NS = 1_000_000_000  # in a second
TRIES = 1000  # the tightest of many brackets is some 100 ns wide
SO_TIMESTAMPNS = 35  # 64-bit Linux; Python up to 3.13 has no name for it
STAMP = struct.Struct("=qq")  # seconds, nanoseconds of CLOCK_REALTIME

Ancillary = list[tuple[int, int, bytes]]  # as recvmsg returns it


@dataclass(frozen=True, slots=True)
class Offset:
    """CLOCK_REALTIME minus CLOCK_MONOTONIC, and how wide the bracket around that reading was."""

    real_minus_mono_ns: int
    bracket_ns: int


def read_offset() -> Offset:
    """Read the monotonic clock on both sides of the wall clock, many times, and keep the tightest."""
    best = Offset(0, 1 << 62)
    for _ in range(TRIES):
        before, real, after = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        if after - before < best.bracket_ns:
            best = Offset(real - (before + after) // 2, after - before)
    return best


def has_stepped(start: Offset, end: Offset) -> bool:
    """Whether the wall clock was set in between: slewing moves both clocks alike, a step moves one."""
    moved = abs(end.real_minus_mono_ns - start.real_minus_mono_ns)
    return moved > start.bracket_ns + end.bracket_ns


def kernel_stamp_ns(ancillary: Ancillary) -> int | None:
    """Read the kernel's receive time in CLOCK_REALTIME; None when the read carried no stamp."""
    for _level, kind, packed in ancillary:
        if kind == SO_TIMESTAMPNS and len(packed) == STAMP.size:
            seconds, nanoseconds = STAMP.unpack(packed)
            return int(seconds) * NS + int(nanoseconds)
    return None
