"""The failures that the kernel's log shows: what ended an engine that had no time to log why."""

from bench.engines.failures import FailureClass

_XIDS = "NVIDIA's catalogue of Xid errors, https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html"
# After these the GPU cannot be trusted before a reset. Not among them are 94, a contained ECC error, which ends only
# the program that met it, and 63, a memory row that was remapped as it should be.
BROKEN_XIDS = {
    48: "double-bit ECC error",
    64: "a memory row could not be remapped",
    95: "uncontained ECC error",
    119: "the GPU's system processor (GSP) did not answer in time",
    120: "error of the GPU's system processor (GSP)",
    140: "unrecovered ECC error",
}

FAILURES = (
    FailureClass(
        name="oom_killer",
        patterns=(r"(?:Memory cgroup out of memory|Out of memory): Killed process \d+ \([^)]*\)",),
        remedy="lower --kv-cache-memory-bytes, or use a machine with more host memory",
        retry="ladder",
        source="the kernel's log, seen on Linux with a limit of a cgroup",
    ),
    FailureClass(
        name="gpu_hang",
        patterns=(r"amdgpu: .*(?:retry page fault|GPU reset)", r"NVRM: Xid .*\): 79,"),
        remedy="use another machine",
        retry="replace_machine",
        source=f"the log of the kernel's driver amdgpu; {_XIDS}",
    ),
    FailureClass(
        name="gpu_broken",
        patterns=(rf"NVRM: Xid .*\): (?:{'|'.join(map(str, BROKEN_XIDS))}),",),
        remedy="use another machine: this GPU needs a reset or a repair",
        retry="replace_machine",
        source=_XIDS,
    ),
)
