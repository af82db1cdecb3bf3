"""A machine as found, and its GPUs."""

from bench.frozen import StoredValue


class GpuFacts(StoredValue):
    """One GPU as its tool describes it; None where the tool does not say."""

    uuid: str | None = None
    serial_sha256: str | None = None  # its first 16 digits
    vbios: str | None = None
    partition: str | None = None  # SPX or CPX, MIG enabled or disabled
    memory_partition: str | None = None  # NPS1, NPS4
    power_cap_w: float | None = None
    ecc: bool | None = None  # of its memory
    firmware: tuple[str, ...] = ()  # NAME=version of each, sorted; empty: unknown


class HostFacts(StoredValue):
    """The machine as found; `gpus` is empty where there is none."""

    hostname: str
    kernel: str
    cpu_model: str | None
    cpu_count: int
    memory_bytes: int
    gpus: tuple[str, ...] = ()
    gpu_driver: str | None = None
    numa_balancing: int | None = None  # 0: off, as a GPU wants it; None: the kernel has none, or it was not read
    python_version: str
    cpu_microcode: str | None = None
    bios_version: str | None = None
    serial_sha256: str | None = None  # of the machine's serial number (DMI): its first 16 digits
    rocm_version: str | None = None
    cuda_version: str | None = None  # the highest that NVIDIA's driver serves
    gpu_details: tuple[GpuFacts, ...] = ()  # in the order of `gpus`; empty: none, or not read
