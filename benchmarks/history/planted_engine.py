"""An engine that is started with a planted change of which its night learns nothing: a script in place of `vllm`.

The script starts the `vllm` of our own environment with the change that the file `plant` beside it names; for a long
run of both sides, with the one that the variable PLANTED_CHANGE names. All nights have the same script and flags.
"""

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from nights.durable import make_folder, write_text

NAME, PLANT = "vllm", "plant"  # of the script, and of the file that names the change of the next night
VARIABLE = "PLANTED_CHANGE"
PLACEBO = "nothing"
# What it is, and the lines of a shell that do it; all sizes were chosen before anything was measured.
CHANGES: Mapping[str, tuple[str, str]] = {
    PLACEBO: ("nothing", ":"),
    **{
        f"competitor-{share}": (f"a process on each core computes {share} % of the time", f"compete {share}")
        for share in (3, 5, 10, 20)
    },
    "three-sequences": ("a batch of at most three sequences, not four or more", 'set -- "$@" --max-num-seqs 3'),
    "small-blocks": (
        "blocks of 32 tokens in the KV cache, the smallest that it takes, not 128",
        'set -- "$@" --block-size 32',
    ),
    "two-threads": ("two threads that compute, not one", "export OMP_NUM_THREADS=2"),
}
_SCRIPT = """#!/bin/sh
here=$(dirname "$0")
compete() {{
  for core in $(seq 0 $(($(nproc) - 1))); do
    {python} -P "$here/competitor.py" "$1" "$core" $$ </dev/null >/dev/null 2>&1 &
  done
}}
plant=${{{variable}:-$(cat "$here/{plant}")}}
if [ "$1" = serve ]; then
  case $plant in
{cases}
  *) echo "there is no planted change '$plant'" >&2; exit 2 ;;
  esac
fi
exec {vllm} "$@"
"""
# Its parent is the engine, which took the place of the script: it ends with it.
_COMPETITOR = """import os, sys, time
share, period_s, engine = float(sys.argv[1]) / 100, 0.02, int(sys.argv[3])
os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[int(sys.argv[2])]})
while os.getppid() == engine:
    until = time.monotonic() + period_s * share
    while time.monotonic() < until:
        pass
    time.sleep(period_s * (1 - share))
"""


def write_engine(folder: Path, vllm: Path) -> Path:
    """Write the script for this `vllm`, with the Python of its environment beside it, and return the script."""
    make_folder(folder)
    cases = "\n".join(f"  {name}) {lines} ;;" for name, (_what, lines) in CHANGES.items())
    script = _SCRIPT.format(
        variable=VARIABLE, plant=PLANT, cases=cases, vllm=shlex.quote(str(vllm)), python=shlex.quote(sys.executable)
    )
    write_text(folder / "competitor.py", _COMPETITOR)
    # A link would not find the packages of its environment.
    python = f'#!/bin/sh\nexec {shlex.quote(str(vllm.with_name("python")))} "$@"\n'
    for name, text in ((NAME, script), ("python", python)):
        write_text(folder / name, text)
        (folder / name).chmod(0o755)
    plant(folder, PLACEBO)
    return folder / NAME


def plant(folder: Path, change: str) -> None:
    """Let the engine's next start have this change."""
    write_text(folder / PLANT, change)
