"""A telemetry CSV: a claim of its own, or the device data of the result beside it.

With a result, it is cut to the measured window before averaging. Energy is power integrated by trapezoids.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

import numpy as np

from bench.audit.claim import Claim, Device, Remark
from bench.errors import UnreadableResultError
from bench.metrics import Floats
from warehouse.importers.format import Format
from warehouse.importers.parsing.document import Document, read_document
from warehouse.importers.telemetry.rows import Samples, by_device, is_telemetry, samples_of

Window = tuple[float, float]  # seconds since 1970
QUARTER_HOUR_S = 900.0  # every time zone's offset is a multiple of it
ZONE_MAX_S = 14 * 3600.0
SNIFFED_MAX = 16  # tables beside a result that are inspected; in larger folders the name must match


def read(document: Document, form: Format) -> Iterator[Claim]:
    """The claim of a telemetry file on its own: its time span is the window."""
    samples = samples_of(document)
    window = (float(samples.at_s.min()), float(samples.at_s.max())) if len(samples.at_s) else None
    device = device_of(samples, window)
    yield Claim(
        lineage=form.lineage(document),
        # Local times cannot be placed on the UTC axis.
        device=device if samples.has_zone else replace(device, begin_s=None, end_s=None),
        label="telemetry",
        required=form.required,
    )


def with_telemetry(document: Document, claims: Iterator[Claim]) -> Iterator[Claim]:
    """The claims of a result, with the telemetry of each claim's window."""
    beside = _beside(document)
    for claim in claims:
        yield claim if beside is None or claim.device is not None else _with_device(claim, beside)


def _with_device(claim: Claim, beside: Document) -> Claim:
    try:
        samples = _samples(beside.name, beside.data)
    except UnreadableResultError as error:
        return replace(claim, remarks=(*claim.remarks, Remark("unreadable_value", f"{error}; ignored")))
    return replace(claim, device=device_of(samples, _window(claim)))


@lru_cache(maxsize=2)  # the results of a folder share one telemetry file
def _samples(name: str, data: bytes) -> Samples:
    return samples_of(Document(name, data))


def _beside(document: Document) -> Document | None:
    """The telemetry file with the same stem, or the only one in the folder."""
    tables = [name for name in document.siblings if name.endswith(".csv") and name != document.path.name]
    stem = document.path.name.split(".")[0]
    own = [name for name in tables if name.startswith(stem)]
    for names in (own, tables):
        found = [table for name in names[:SNIFFED_MAX] if (table := _telemetry(document, name)) is not None]
        if len(found) == 1 and len(names) <= SNIFFED_MAX:
            return found[0]
    return None


def _telemetry(document: Document, name: str) -> Document | None:
    data = document.sibling(name)
    try:
        table = None if data is None else read_document(name, data)
    except UnreadableResultError:
        return None
    return table if table is not None and is_telemetry(table) else None


def _window(claim: Claim) -> Window | None:
    """The measured window in seconds since 1970; None if the result does not state it."""
    begin, end = claim.said.started_at_s, claim.said.ended_at_s
    if begin is not None and claim.said.duration_s is not None and end is None:
        end = begin + claim.said.duration_s
    return (begin, end) if begin is not None and end is not None and begin < end else None


def device_of(samples: Samples, window: Window | None) -> Device:
    """The device values within the window; without a window, only those that need none."""
    samples = _on_utc(samples, window)
    inside = _inside(samples, window)
    device = Device(
        was_asked=True,
        sample_count=int(inside.sum()),
        blank_count=samples.blank_count,
        device_count=len(set(samples.device)),
        begin_s=float(samples.at_s.min()) if len(samples.at_s) and samples.has_zone else None,
        end_s=float(samples.at_s.max()) if len(samples.at_s) and samples.has_zone else None,
        power_max_w=_most(samples, "power_w", inside),
        power_cap_w=_most(samples, "cap_w", inside),
        temp_edge_max_c=_most(samples, "edge_c", inside),
        temp_junction_max_c=_most(samples, "junction_c", inside),
        used_gib=_most(samples, "used_gib", inside),
        edge_over_junction_c=_edge_over_junction(samples, inside),
        throttled_share=_share(samples.throttled[inside]),
        ecc_errors=_rise(samples, inside),
    )
    return _with_pace(device, samples) if window is None else _with_energy(_with_pace(device, samples), samples, window)


def _on_utc(samples: Samples, window: Window | None) -> Samples:
    """The samples on the window's clock; local times are shifted by the only offset that brackets the window."""
    if samples.has_zone or window is None or not len(samples.at_s):
        return samples
    offsets = np.arange(-ZONE_MAX_S, ZONE_MAX_S + 1, QUARTER_HOUR_S)
    begin, end = samples.at_s.min() + offsets, samples.at_s.max() + offsets
    fitting = offsets[(begin <= window[0]) & (end >= window[1])]
    return replace(samples, at_s=samples.at_s + fitting[0], has_zone=True) if len(fitting) == 1 else samples


def _inside(samples: Samples, window: Window | None) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    if window is None:
        return np.ones(len(samples.at_s), dtype=np.bool_)
    return (samples.at_s >= window[0]) & (samples.at_s <= window[1])


def _most(samples: Samples, what: str, inside: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> float | None:
    found = samples.measured.get(what)
    values = np.array([]) if found is None else found[inside & np.isfinite(found)]
    return float(values.max()) if len(values) else None


def _edge_over_junction(samples: Samples, inside: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> float | None:
    edge, junction = samples.measured.get("edge_c"), samples.measured.get("junction_c")
    if edge is None or junction is None:
        return None
    over = (edge - junction)[inside]
    over = over[np.isfinite(over)]
    return float(over.max()) if len(over) else None


def _share(flags: Floats) -> float | None:
    known = flags[np.isfinite(flags)]
    return float(known.mean()) if len(known) else None


def _rise(samples: Samples, inside: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> int | None:
    """Uncorrectable errors within the window, over all devices."""
    counted = samples.measured.get("ecc")
    if counted is None:
        return None
    known = [counted[places[inside[places] & np.isfinite(counted[places])]] for _, places in by_device(samples)]
    rises = [float(each.max() - each.min()) for each in known if len(each)]
    return int(sum(rises)) if rises else None


def _with_pace(device: Device, samples: Samples) -> Device:
    """Median and maximum interval between samples of one device."""
    steps = [np.diff(samples.at_s[places]) for _, places in by_device(samples)]
    known = np.concatenate(steps) if steps else np.array([])
    if not len(known):
        return device
    return replace(device, period_s=float(np.median(known)), largest_gap_s=float(known.max()))


def _with_energy(device: Device, samples: Samples, window: Window) -> Device:
    power = [_of_device(samples, "power_w", places) for _, places in by_device(samples)]
    energies = [_integrated(at, values, window) for at, values in power]
    known = [value for value in energies if value is not None]
    if not known or len(known) < len(energies):
        return device
    counters = [_counted(*_of_device(samples, "energy_j", places), window) for _, places in by_device(samples)]
    counted = [value for value in counters if value is not None]
    return replace(
        device,
        energy_j=sum(known),
        energy_scope="gpus",
        power_mean_w=sum(known) / len(known) / (window[1] - window[0]),
        energy_counter_j=sum(counted) if counted and len(counted) == len(counters) else None,
    )


def _of_device(
    samples: Samples, what: str, places: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> tuple[Floats, Floats]:
    values = samples.measured.get(what)
    if values is None:
        return np.array([]), np.array([])
    known = places[np.isfinite(values[places])]
    return samples.at_s[known], values[known]


def _integrated(at: Floats, watts: Floats, window: Window) -> float | None:
    """Energy of the window in J; None if the samples do not bracket it."""
    if len(at) < 2 or at[0] > window[0] or at[-1] < window[1]:  # noqa: PLR2004 - an interval has two ends
        return None
    inside = (at > window[0]) & (at < window[1])
    grid = np.concatenate([[window[0]], at[inside], [window[1]]])
    power = np.interp(grid, at, watts)
    return float(((power[1:] + power[:-1]) / 2 * np.diff(grid)).sum())


def _counted(at: Floats, joules: Floats, window: Window) -> float | None:
    if len(at) < 2 or at[0] > window[0] or at[-1] < window[1]:  # noqa: PLR2004 - an interval has two ends
        return None
    first, last = np.interp(window, at, joules)
    return float(last - first)


FORMAT = Format("telemetry", 1, is_telemetry, read)
