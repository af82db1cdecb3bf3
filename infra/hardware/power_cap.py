"""Set the power cap of this machine's GPUs, read it back, and leave a script that sets what was set before.

The script is written to disk before the first cap is changed, so that whoever ends the lease can run it at any moment.
"""

import os
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.errors import MachineUnfitError, UnreadableResultError
from bench.machine.gpu_identity import NVIDIA_IDENTITY, amd_caps, nvidia_identities
from bench.machine.gpu_telemetry import rocm_smi
from infra.processes.command import run_tool
from infra.reporting import Say
from nights.durable import write_text

UNDO = "undo-power-cap.sh"  # in the folder of a lease on its machine
TOOL_TIMEOUT_S = 60.0
UNDO_TIMEOUT_S = 10 * TOOL_TIMEOUT_S  # for all GPUs of a machine
EXACT_W = 0.5  # tools round to whole watts
Caps = Mapping[str, float]  # watts by the name that the tool has for a GPU
UNREADABLE = (
    "neither nvidia-smi, amd-smi nor rocm-smi reads the power cap of a GPU on this machine, and the suite has "
    "[power]: install one of them, use a host with a GPU, or remove [power]"
)


@dataclass(frozen=True)
class CapTool:
    """A program that reads and sets power caps."""

    name: str
    query: tuple[str, ...]
    read: Callable[[str], Mapping[str | None, float | None]]  # watts by the GPU's name, both None where unknown
    setting: Callable[[str, str], tuple[str, ...]]  # arguments, from the GPU's name and watts

    def caps(self) -> Caps:
        """The cap of each GPU; of none where the tool fails or does not know one of them."""
        done = run_tool([self.name, *self.query], timeout_s=TOOL_TIMEOUT_S)
        try:
            found = self.read(done.out) if done.is_good else {}
        except UnreadableResultError:
            return {}
        known = {gpu: watts for gpu, watts in found.items() if gpu is not None and watts is not None}
        return known if len(known) == len(found) else {}

    def command(self, gpu: str, watts: float) -> list[str]:
        """The command that sets a cap; where we are not root, by sudo, which must not ask for a password."""
        own = [] if os.geteuid() == 0 else ["sudo", "-n"]
        return [*own, shutil.which(self.name) or self.name, *self.setting(gpu, f"{watts:g}")]


def _nvidia_caps(csv: str) -> dict[str | None, float | None]:
    return {gpu.uuid: gpu.power_cap_w for gpu in nvidia_identities(csv)}


def _rocm_caps(text: str) -> dict[str | None, float | None]:
    return {str(gpu.index): gpu.power_cap_w for gpu in rocm_smi.TOOL.reader("").read(text)}


TOOLS = (
    CapTool(
        "nvidia-smi",
        (f"--query-gpu={','.join(NVIDIA_IDENTITY)}", "--format=csv,noheader,nounits"),
        _nvidia_caps,
        lambda gpu, watts: ("-i", gpu, "-pl", watts),
    ),
    CapTool(  # from ROCm 7.2 on a cap has a type
        "amd-smi",
        ("static", "--json"),
        partial(amd_caps, kind="ppt0"),
        lambda gpu, watts: ("set", "-g", gpu, "--power-cap", "ppt0", watts),
    ),
    CapTool("amd-smi", ("static", "--json"), amd_caps, lambda gpu, watts: ("set", "-g", gpu, "--power-cap", watts)),
    CapTool(
        "rocm-smi",
        ("--showmaxpower", "--json"),
        _rocm_caps,
        lambda gpu, watts: ("-d", gpu, "--setpoweroverdrive", watts, "--autorespond", "y"),
    ),
)


def read_caps() -> tuple[CapTool, Caps]:
    """The tool that knows the caps of this machine's GPUs, and these; MachineUnfitError where there is none."""
    for tool in TOOLS:
        if caps := tool.caps():
            return tool, caps
    raise MachineUnfitError(UNREADABLE)


def hold_cap(machine: Path, watts: float | None, say: Say) -> Caps:
    """Set this cap on every GPU, or what was set before the lease where it is None; return the caps as read back.

    `machine`: the folder of the lease. Where nothing must change, nothing is set. Raises MachineUnfitError where a cap
    was not taken, or none can be read.
    """
    undo = machine / UNDO
    if watts is None:
        if undo.exists():
            undo_cap(machine)
            say("the power caps of the GPUs are again what they were before")
        return {}
    tool, before = read_caps()
    if _is_held(before, watts):
        return before
    if not undo.exists():
        write_text(undo, _undo_script([tool.command(gpu, cap) for gpu, cap in before.items()]))
    for done in [run_tool(tool.command(gpu, watts), timeout_s=TOOL_TIMEOUT_S) for gpu in before]:
        if not done.is_good:
            raise MachineUnfitError(f"a power cap of {watts:g} W was not taken: {done.why}")
    caps = tool.caps()
    if not _is_held(caps, watts) or len(caps) != len(before):
        raise MachineUnfitError(f"a power cap of {watts:g} W was set and not taken: {tool.name} reads {_shown(caps)}")
    say(f"the power cap of {len(caps)} GPUs is {watts:g} W, before {_shown(before)}")
    return caps


def require_held(watts: float) -> None:
    """Raise MachineUnfitError where the cap of a GPU is not this one now."""
    tool, caps = read_caps()
    if not _is_held(caps, watts):
        raise MachineUnfitError(
            f"the power cap was {watts:g} W when the load began, and after it {tool.name} reads {_shown(caps)}: "
            "something else on the machine changed it"
        )


def undo_cap(machine: Path) -> None:
    """Set what was set before a lease changed it; MachineUnfitError where that fails, and then it may be repeated."""
    done = run_tool(["sh", str(machine / UNDO)], timeout_s=UNDO_TIMEOUT_S)
    if not done.is_good:
        raise MachineUnfitError(f"the power caps of the GPUs are not what they were before: {done.why}; run it by hand")


def _undo_script(commands: Sequence[Sequence[str]]) -> str:
    """A script that runs each command, and deletes itself once all have succeeded; another run of it does nothing."""
    lines = [f"timeout -s KILL {TOOL_TIMEOUT_S:g} {shlex.join(command)} || failed=1" for command in commands]
    return "\n".join(("#!/bin/sh", "failed=", *lines, '[ -z "$failed" ] && rm -f "$0"', ""))


def _is_held(caps: Caps, watts: float) -> bool:
    return bool(caps) and all(abs(cap - watts) <= EXACT_W for cap in caps.values())


def _shown(caps: Caps) -> str:
    return ", ".join(f"{cap:g} W" for cap in dict.fromkeys(caps.values())) or "no cap"
