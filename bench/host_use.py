"""What a host did besides a run during its load."""

from pydantic import Field

from bench.frozen import StoredValue


class Busy(StoredValue):
    """How busy the host was with other work: load average of one minute, and CPU time stolen by a hypervisor."""

    load_average_before: float
    load_average_after: float
    steal_share: float | None


class HostUse(StoredValue):
    """What processes that are not of the run took of the host during its load, and its GPUs; None where unknown."""

    other_cpu_share: float | None = None  # of the time of the cores that the run may use
    other_processes: tuple[str, ...] = ()  # the busiest by name, with their share of the time of those cores
    other_memory_bytes_per_s: float | None = None  # read from memory and written to it
    other_gpu_processes: tuple[str, ...] | None = None
    other_gpu_bytes: int | None = None  # the most memory that those held at once
    gpu_telemetry: str | None = None  # the tool that sampled the GPUs
    gpu_kernel_errors: tuple[str, ...] | None = None  # the kernel's lines of GPU errors (Xid, RAS, resets)
    cpu_pressure_share: float | None = None  # of the load's time, in which a process waited for a core (PSI)
    memory_pressure_share: float | None = None  # the same for memory
    io_pressure_share: float | None = None  # the same for a disk
    run_queue_mean: float | None = None  # processes that ran or waited for a core, ours among them
    core_frequency_mean_mhz: float | None = None  # of the cores that the run may use
    core_throttle_count: int | None = None  # how often a core or its package was throttled for its heat
    core_work_s: float | None = None  # CPU time of a fixed piece of work: its median during the load
    core_work_slowest_s: float | None = None
    unknown: dict[str, str] = Field(default_factory=dict)  # what could not be measured, and why

    @property
    def others_in_words(self) -> str | None:
        """What other processes took, with the busiest; None where it was not measured."""
        if self.other_cpu_share is None:
            return None
        busiest = f"; busiest: {', '.join(self.other_processes)}" if self.other_processes else ""
        return f"{self.other_cpu_share:.1%} of the CPU time{busiest}"

    def in_words(self, steal_share: float | None, core_speed_share: float | None = None) -> str | None:
        """How the host was: what others took, and what waited for what; `steal_share` is what a hypervisor took.

        `core_speed_share` is the speed of the cores; 1: that of the night's run in which they were fastest.
        """
        shares = {"a core": self.cpu_pressure_share, "a disk": self.io_pressure_share}
        shares["memory"] = self.memory_pressure_share
        waited = [f"for {what} in {share:.0%}" for what, share in shares.items() if share is not None]
        said = [] if self.others_in_words is None else [f"other processes took {self.others_in_words}"]
        said += [f"a process waited {', '.join(waited)} of the load"] if waited else []
        said += [] if steal_share is None else [f"the hypervisor took {steal_share:.1%} of the CPU time"]
        said += [f"the cores were throttled {self.core_throttle_count} times"] if self.core_throttle_count else []
        said += [] if core_speed_share is None else [f"the cores ran at {core_speed_share:.0%} of their best speed"]
        return "; ".join(said) or None
