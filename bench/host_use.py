"""What a host did besides a run during its load."""

from pydantic import Field

from bench.frozen import StoredValue


class HostUse(StoredValue):
    """What processes that are not of the run took of the host during its load, and its GPUs; None where unknown."""

    other_cpu_share: float | None = None  # of the time of the cores that the run may use
    other_processes: tuple[str, ...] = ()  # the busiest, with their CPU seconds
    other_memory_bytes_per_s: float | None = None  # read from memory and written to it
    other_gpu_processes: tuple[str, ...] | None = None
    other_gpu_bytes: int | None = None  # the most memory that those held at once
    gpu_telemetry: str | None = None  # the tool that sampled the GPUs
    gpu_kernel_errors: tuple[str, ...] | None = None  # the kernel's lines of GPU errors (Xid, RAS, resets)
    cpu_pressure_share: float | None = None  # of the load's time, in which a process waited for a core (PSI)
    memory_pressure_share: float | None = None  # the same for memory
    unknown: dict[str, str] = Field(default_factory=dict)  # what could not be measured, and why
