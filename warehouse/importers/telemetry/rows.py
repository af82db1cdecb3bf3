"""Parse telemetry CSVs of nvidia-smi, `amd-smi watch` (repeated header) and generic ones into samples.

The unit is in the cell, in the header or at the end of the column name; values in one that we do not know are left out
with a remark. Rows without a device are counted and ignored.
"""

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

import numpy as np

from bench.audit.claim import Remark
from bench.audit.device_samples import Samples
from bench.errors import UnreadableResultError
from bench.machine.gpu_telemetry.throttle import of_word
from bench.metrics import Floats
from warehouse.importers.parsing.document import Document
from warehouse.importers.parsing.fields import NOTHING
from warehouse.importers.parsing.units import ENERGY, POWER

TIMES = ("timestamp", "time", "epoch")
# Whole names: `gpu_use_percent` names none.
DEVICES = (
    *("index", "gpu", "device", "gpu_id", "card", "gpu_index", "device_id", "device_index", "card_id", "card_index"),
    *("gpu_uuid", "device_uuid", "uuid", "gpu_bus_id", "pci_bus_id"),
)
# Prefixes of column names by what they measure, in lower case with `_` for every other character.
MEASURED = {
    "power_w": (
        "power_draw",
        "power_watts",
        "socket_power",
        "average_socket_power",
        "power_usage",
        "current_socket_power",
    ),
    "cap_w": ("power_limit", "power_cap", "max_power", "enforced_power_limit"),
    "edge_c": ("temp_edge", "edge_temperature", "temperature_edge", "temperature_gpu"),
    "junction_c": (
        "temp_junction",
        "temp_hotspot",
        "hotspot_temperature",
        "temperature_hotspot",
        "junction_temperature",
    ),
    "energy_j": ("energy_accumulator", "total_energy_consumption", "energy_counter", "energy_j"),
    "used_gib": ("memory_used", "vram_used", "used_vram"),
    "ecc": ("ecc_errors_uncorrected", "uncorrectable_ecc", "total_uncorrectable_count", "ecc_uncorrected"),
}
_NO_FACTOR = ("f", "°f", "fahrenheit", "k", "kelvin")  # units of a temperature that a factor does not turn into ours
_WATTS = POWER | {"watt": 1.0}
_CELSIUS = {**dict.fromkeys(("c", "°c", "degc", "deg c", "celsius"), 1.0), **dict.fromkeys(_NO_FACTOR, np.nan)}
_GIB = {"mib": 2.0**-10, "mb": 2.0**-10, "bytes": 2.0**-30, "b": 2.0**-30, "gib": 1.0, "gb": 1.0}
# Factors to our unit, by the unit as it is written or in lower case: MJ are megajoules, mJ and mj are millijoules.
SCALES: Mapping[str, Mapping[str, float]] = {
    "power_w": _WATTS,
    "cap_w": _WATTS,
    "edge_c": _CELSIUS,
    "junction_c": _CELSIUS,
    "energy_j": ENERGY | {"joule": 1.0, "joules": 1.0, "MJ": 1e6},
    "used_gib": _GIB | {"kib": 2.0**-20, "kb": 2.0**-20},
    "ecc": {"count": 1.0, "errors": 1.0},
}
_CELL = re.compile(r"(?P<number>[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)\s*(?P<unit>[^\d\s]*)")
_IN_BRACKETS = re.compile(r"[\[(](.*?)[\])]")
MILLISECONDS_FROM = 1e11  # as seconds that would be the year 5138


def is_telemetry(document: Document) -> bool:
    """Whether its first line has a time, a device and something measured. Never raises."""
    names = [plain(name) for name in document.header()]
    return (
        _find(names, TIMES) is not None
        and _named(names, DEVICES) is not None
        and any(_find(names, begins) is not None for begins in MEASURED.values())
    )


def plain(name: str) -> str:
    """A column's name without its unit: `power.draw [W]` as `power_draw`."""
    return re.sub(r"[^a-z0-9]+", "_", re.sub(r"[\[(][^\[(\])]*[\])]", "", name.lower())).strip("_")


def samples_of(document: Document) -> Samples:
    """Its samples in file order; raises if columns are missing or a time is invalid."""
    header, rows = _rows(document)
    names = [plain(name) for name in header]
    time, device = _find(names, TIMES), _named(names, DEVICES)
    if time is None or device is None:
        raise UnreadableResultError(f"{document.name} has no time column or no device column")
    kept = [(line, row) for line, row in rows if row[device].strip().lower() not in NOTHING]
    moments = [_moment(document.name, line, row[time]) for line, row in kept]
    remarks: list[Remark] = []
    measured = {
        what: _column(f"{document.name}: {header[at]}", header[at], [row[at] for _, row in kept], SCALES[what], remarks)
        for what, begins in MEASURED.items()
        if (at := _find(names, begins)) is not None
    }
    return Samples(
        np.array([moment for moment, _ in moments], dtype=np.float64),
        tuple(row[device].strip() for _, row in kept),
        measured,
        _throttled(names, kept),
        len(rows) - len(kept),
        all(has_zone for _, has_zone in moments),
        tuple(remarks),
    )


def _rows(document: Document) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """Header and rows with their line numbers; skips repeated headers and a truncated last row."""
    reader = csv.reader(io.StringIO(document.text))
    try:
        lines = [(reader.line_num, [cell.strip() for cell in row]) for row in reader if row]
    except csv.Error as error:
        raise UnreadableResultError(f"{document.name} line {reader.line_num} is not valid CSV: {error}") from error
    header = lines[0][1] if lines else []
    rows = [(line, row) for line, row in lines[1:] if row != header]
    if rows and len(rows[-1][1]) < len(header) and not document.text.endswith("\n"):
        del rows[-1]  # its tool was killed as it wrote
    wrong = next((line for line, row in rows if len(row) != len(header)), None)
    if wrong is not None:
        raise UnreadableResultError(f"{document.name} line {wrong} has a different number of cells than the header")
    return header, rows


def _find(names: list[str], begins: tuple[str, ...]) -> int | None:
    """The first column with one of these names, without a unit suffix or else with one."""
    named = _named(names, begins)
    if named is not None:
        return named
    for begin in begins:
        for at, name in enumerate(names):
            if name.startswith(f"{begin}_"):
                return at
    return None


def _named(names: list[str], wanted: tuple[str, ...]) -> int | None:
    """The first column with one of these names, the first of them before the others."""
    return next((names.index(one) for one in wanted if one in names), None)


def _moment(file: str, line: int, text: str) -> tuple[float, bool]:
    """Seconds since 1970 and whether the text has a time zone; an epoch is s or ms by its size."""
    try:
        number = float(text)
    except ValueError:
        return _written(file, line, text)
    if not np.isfinite(number) or number < 0:
        raise UnreadableResultError(f"{file} line {line}: {text!r:.40} is not a time")
    return (number / 1e3 if number >= MILLISECONDS_FROM else number), True


def _written(file: str, line: int, text: str) -> tuple[float, bool]:
    try:
        moment = datetime.fromisoformat(text.replace("/", "-"))
        return moment.replace(tzinfo=moment.tzinfo or UTC).timestamp(), moment.tzinfo is not None
    except (ValueError, OverflowError) as error:
        raise UnreadableResultError(f"{file} line {line}: {text!r:.40} is not a time") from error


def _column(
    place: str, header: str, cells: Sequence[str], scales: Mapping[str, float], remarks: list[Remark]
) -> Floats:
    """The values of a column in our unit, NaN for those in a unit that we do not know; adds a remark for each such."""
    usual, found = _unit_of(header, scales), [_CELL.fullmatch(cell) for cell in cells]
    units = ["" if each is None else each["unit"] or usual for each in found]
    factors = {unit: _factor(unit, scales) for unit in dict.fromkeys(units)}
    unknown = [unit for unit, factor in factors.items() if np.isnan(factor)]
    remarks += [Remark("unit_unknown", f"{place} has the unit {unit!r:.40}; ignored") for unit in unknown]
    return np.array(
        [
            np.nan if each is None else float(each["number"]) * factors[unit]
            for each, unit in zip(found, units, strict=True)
        ],
        dtype=np.float64,
    )


def _unit_of(header: str, scales: Mapping[str, float]) -> str:
    """The unit in the brackets of a header, or its last word where that is a unit; `draw` of `power_draw` is none."""
    if in_brackets := _IN_BRACKETS.search(header):
        return in_brackets[1].strip()
    last = re.split(r"[^a-zA-Z0-9°]", header)[-1]
    return last if last in scales or last.lower() in scales else ""


def _factor(unit: str, scales: Mapping[str, float]) -> float:
    return scales.get(unit, scales.get(unit.lower(), np.nan)) if unit else 1.0


def _throttled(names: list[str], rows: list[tuple[int, list[str]]]) -> Floats:
    """1 for a sample with throttled clocks, 0 for one without."""
    at = next((at for at, name in enumerate(names) if "throttle" in name), None)
    read: Callable[[str], float] = _is_throttled
    return np.array([np.nan if at is None else read(row[at]) for _, row in rows], dtype=np.float64)


def _is_throttled(cell: str) -> float:
    is_throttled = of_word(cell).is_throttled
    return np.nan if is_throttled is None else float(is_throttled)
