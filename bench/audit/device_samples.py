"""What samples of GPUs make of a claim's device: power, energy and states within the window of its load.

Energy is power integrated by trapezoids, and the rise of the device's own counter.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from bench.audit.claim import Device, Remark
from bench.metrics import Floats

Window = tuple[float, float]  # seconds, on the samples' clock
QUARTER_HOUR_S = 900.0  # every time zone's offset is a multiple of it
ZONE_MAX_S = 14 * 3600.0
BUSY_SHARE = 0.9
BUSY_WINDOW, BUSY_MIN = 10, 20  # samples


@dataclass(frozen=True)
class Samples:
    """The samples of a file: seconds since 1970, device and values; NaN if unknown."""

    at_s: Floats
    device: tuple[str, ...]
    measured: dict[str, Floats]
    throttled: Floats
    blank_count: int
    has_zone: bool  # False: local time, off from UTC by whole quarter hours
    remarks: tuple[Remark, ...] = ()


def by_device(samples: Samples) -> Iterator[tuple[str, np.ndarray[tuple[int], np.dtype[np.int64]]]]:
    """Each device with the indices of its samples, ordered by time."""
    devices = np.array(samples.device)
    for name in dict.fromkeys(samples.device):
        places = np.flatnonzero(devices == name)
        yield name, places[np.argsort(samples.at_s[places], kind="stable")]


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
        clock_drop_share=max((_drop(clocks) for clocks in _busy_clocks(samples, inside)), default=None),
        clock_apart_share=_apart([float(np.median(clocks)) for clocks in _busy_clocks(samples, inside)]),
        ecc_errors=_rise(samples, "ecc", inside),
        ecc_corrected=_rise(samples, "ecc_corrected", inside),
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


def _busy_clocks(samples: Samples, inside: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> list[Floats]:
    """The core clocks of each device while it was busy, of those with enough samples."""
    clock, busy = samples.measured.get("clock_mhz"), samples.measured.get("busy_share")
    if clock is None or busy is None:
        return []
    is_busy = inside & (busy >= BUSY_SHARE) & np.isfinite(clock)
    found = [clock[places[is_busy[places]]] for _, places in by_device(samples)]
    return [clocks for clocks in found if len(clocks) >= BUSY_MIN]


def _drop(clocks: Floats) -> float:
    """The lowest mean of ten in a row below the 90th percentile of such means: work varies from second to second."""
    means = np.convolve(clocks, np.full(BUSY_WINDOW, 1 / BUSY_WINDOW), mode="valid")
    high = float(np.percentile(means, 90))
    return max(0.0, 1 - float(means.min()) / high) if high > 0 else 0.0


def _apart(medians: list[float]) -> float | None:
    if len(medians) < 2:  # noqa: PLR2004 - a comparison needs two
        return None
    middle = float(np.median(medians))
    return max(0.0, 1 - min(medians) / middle) if middle > 0 else None


def _rise(samples: Samples, what: str, inside: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> int | None:
    """How far a counter of errors rose within the window, over all devices."""
    counted = samples.measured.get(what)
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
    devices = [places for _, places in by_device(samples)]
    energy_j = _of_all([_integrated(*_of_device(samples, "power_w", places), window) for places in devices])
    counter_j = _of_all([_counted(*_of_device(samples, "energy_j", places), window) for places in devices])
    if energy_j is None and counter_j is None:
        return device
    return replace(
        device,
        energy_j=energy_j,
        energy_scope="gpus",
        power_mean_w=None if energy_j is None else energy_j / len(devices) / (window[1] - window[0]),
        energy_counter_j=counter_j,
    )


def _of_all(energies: list[float | None]) -> float | None:
    """The energy of all devices; None where that of one is unknown."""
    known = [value for value in energies if value is not None]
    return sum(known) if known and len(known) == len(energies) else None


def _of_device(
    samples: Samples, what: str, places: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> tuple[Floats, Floats]:
    values = samples.measured.get(what)
    if values is None:
        return np.array([]), np.array([])
    known = places[np.isfinite(values[places])]
    return samples.at_s[known], values[known]


def _integrated(at: Floats, watts: Floats, window: Window) -> float | None:
    """Energy of the window in J; None if the samples do not bracket it, or it spans no time."""
    if not _is_bracketed(at, window):
        return None
    inside = (at > window[0]) & (at < window[1])
    grid = np.concatenate([[window[0]], at[inside], [window[1]]])
    power = np.interp(grid, at, watts)
    return float(((power[1:] + power[:-1]) / 2 * np.diff(grid)).sum())


def _counted(at: Floats, joules: Floats, window: Window) -> float | None:
    """The rise of the counter within the window, under the same conditions."""
    if not _is_bracketed(at, window):
        return None
    first, last = np.interp(window, at, joules)
    return float(last - first)


def _is_bracketed(at: Floats, window: Window) -> bool:
    return len(at) > 0 and at[0] <= window[0] < window[1] <= at[-1]
