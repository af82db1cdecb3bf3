"""Why a GPU lowers its clocks, in the tools' own words.

A power cap and requested clocks are normal operation; heat and a power brake are not.
"""

from collections.abc import Mapping
from dataclasses import dataclass

# Bits of NVML's nvmlClocksEventReasons.
_MEANT = {0x1: "idle", 0x2: "application clocks", 0x4: "power cap", 0x10: "sync boost", 0x100: "display clocks"}
_HELD_BACK = {
    0x8: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
}
_UNKNOWN = ("", "n/a", "none", "nan", "not supported", "unknown error")
_QUIET = ("unthrottled", "not active", "false", "no")
_VIOLATIONS = {
    "prochot_violation_status": "processor hot",
    "socket_thermal_violation_status": "socket thermal",
    "vr_thermal_violation_status": "voltage regulator thermal",
    "hbm_thermal_violation_status": "memory thermal",
}
_POWER_VIOLATION = "ppt_violation_status"


@dataclass(frozen=True)
class Throttling:
    """Whether a GPU is throttled, None if unknown; `reasons` also lists the power cap, None without any."""

    is_throttled: bool | None = None
    reasons: str | None = None


def of_word(cell: str) -> Throttling:
    """The meaning of one cell: NVIDIA's bit mask, or a word such as `UNTHROTTLED`."""
    word = cell.strip().strip("[]").lower()
    if word in _UNKNOWN:
        return Throttling()
    try:
        bits = int(word, 0)
    except ValueError:
        return Throttling(False) if word in _QUIET else Throttling(True, word)
    held_back = [name for bit, name in _HELD_BACK.items() if bits & bit]
    meant = [name for bit, name in _MEANT.items() if bits & bit]
    return Throttling(bool(held_back), ", ".join((*held_back, *meant)) or None)


def of_amd(cells: Mapping[str, str]) -> Throttling:
    """The meaning of amd-smi's cells: its violations (MI300 and later), else its `throttle_status`."""
    active = {name: cells.get(name, "N/A").strip().lower() for name in (*_VIOLATIONS, _POWER_VIOLATION)}
    known = [name for name, word in active.items() if word not in _UNKNOWN]
    if not known:
        return of_word(cells.get("throttle_status", ""))
    found = [reason for name, reason in _VIOLATIONS.items() if active[name] == "active"]
    capped = ["power cap"] if active[_POWER_VIOLATION] == "active" else []
    return Throttling(bool(found), ", ".join((*found, *capped)) or None)
