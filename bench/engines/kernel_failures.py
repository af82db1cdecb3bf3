"""The failures that the kernel's log shows: what ended an engine that had no time to log why."""

from bench.engines.failures import FailureClass

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
        patterns=(r"amdgpu: .*(?:retry page fault|GPU reset)", r"NVRM: Xid .*: 79,"),
        remedy="use another machine",
        retry="replace_machine",
        source="the log of the kernel's driver amdgpu; NVIDIA's list of Xid errors",
    ),
)
