"""The GPU telemetry of an aiperf report, which may be configured and still empty."""

from bench.audit.claim import Device
from warehouse.importers.parsing.tree import Tree
from warehouse.importers.parsing.units import ENERGY, POWER

# MJ means megajoule in aiperf; every other unit is case-insensitive.
MEGAJOULE = 1e6


def device_of(telemetry: Tree) -> Device | None:
    """The values of the GPUs; None if no telemetry was requested."""
    configured = telemetry.part("summary").raw("endpoints_configured")
    if not configured:
        return None
    endpoints = telemetry.part("endpoints")
    gpus = [gpu for name in endpoints.names() for gpu in _gpus(endpoints.part(name))]
    power = [gpu.part("metrics").part("gpu_power_usage") for gpu in gpus]
    means = [value for each in power if (value := _in(each, "avg", POWER)) is not None]
    highest = [value for each in power if (value := _in(each, "max", POWER)) is not None]
    energy = [value for gpu in gpus if (value := _energy(gpu.part("metrics").part("energy_consumption"))) is not None]
    return Device(
        was_asked=True,
        sample_count=sum(each.count("count") or 0 for each in power) if _is_counted(power) else None,
        device_count=len(gpus) or None,
        power_mean_w=sum(means) / len(means) if means else None,
        power_max_w=max(highest, default=None),
        energy_j=sum(energy) if energy else None,
        energy_scope="gpus" if energy else None,
    )


def _is_counted(power: list[Tree]) -> bool:
    """Whether any metric has samples."""
    return not any(each.names() for each in power) or all("count" in each for each in power)


def _gpus(endpoint: Tree) -> list[Tree]:
    gpus = endpoint.part("gpus")
    return [gpus.part(name) for name in gpus.names()]


def _in(metric: Tree, name: str, units: dict[str, float]) -> float | None:
    scale = units.get((metric.text("unit") or "").lower())
    return None if scale is None else metric.amount(name, scale=scale)


def _energy(metric: Tree) -> float | None:
    if metric.text("unit") == "MJ":
        return metric.amount("avg", scale=MEGAJOULE)
    return _in(metric, "avg", ENERGY)
