"""Two GPUs that are not there: programs that keep a power cap of each in a file, and take only what its firmware would.

`stubborn` in the folder makes them ignore a cap, without an error, as a driver without persistence does.
"""

from pathlib import Path
from typing import Literal

Maker = Literal["nvidia-smi", "amd-smi", "amd-smi-7.2", "rocm-smi"]
DEFAULT_W, LEAST_W, MOST_W = 700, 200, 700
NAMES = {"nvidia-smi": ("GPU-aaaa", "GPU-bbbb")}

_HEAD = """#!/bin/sh
folder={folder}
echo "$0 $*" >> "$folder/calls.log"
take() {{ # name watts
    [ -e "$folder/cap-$1" ] || {{ echo "no device $1" >&2; exit 6; }}
    if [ "${{2%.*}}" -lt {least} ] || [ "${{2%.*}}" -gt {most} ]; then
        echo "Provided power limit $2 W is not a valid power limit which should be between {least} W and {most} W"
        exit 3
    fi
    [ -e "$folder/stubborn" ] || echo "$2" > "$folder/cap-$1"
    exit 0
}}
each() {{ for file in "$folder"/cap-*; do printf "$1" "${{file##*/cap-}}" "$(cat "$file")"; done; }}
"""
_SCRIPTS: dict[str, str] = {
    "nvidia-smi": """
case "$*" in
*-pl*) take "$2" "$4";;
*--query-gpu=uuid,serial,*) each '%s, [N/A], 96.00, %s.00, [N/A], [N/A]\\n';;
*--query-gpu=index,name,*) n=0; for file in "$folder"/cap-*; do
    echo "$n, NVIDIA H100 80GB HBM3, 570.124.06, 81559, 4"; n=$((n+1)); done;;
*--query-compute-apps=*) ;;
*) echo "not known here: $*" >&2; exit 2;;
esac
""",
    "amd-smi": """
case "$*" in
"set -g "*" --power-cap "*) take "$3" "$5";;
"static --json") each '{"gpu": %s, "limit": {"socket_power": {"value": %s, "unit": "W"}}}\\n' |
    { printf '{"gpu_data": ['; paste -sd, -; printf ']}'; };;
*) echo "not known here: $*" >&2; exit 2;;
esac
""",
    "amd-smi-7.2": """
case "$*" in
"set -g "*" --power-cap ppt0 "*) take "$3" "$6";;
"static --json") each '{"gpu": %s, "limit": {"ppt0": {"socket_power_limit": {"value": %s, "unit": "W"}}}}\\n' |
    { printf '{"gpu_data": ['; paste -sd, -; printf ']}'; };;
*) echo "not known here: $*" >&2; exit 2;;
esac
""",
    "rocm-smi": """
case "$*" in
"-d "*" --setpoweroverdrive "*" --autorespond y") take "$2" "$4";;
"--showmaxpower --json") each '"card%s": {"Max Graphics Package Power (W)": "%s.0"}\\n' |
    { printf '{'; paste -sd, -; printf '}'; };;
*) echo "not known here: $*" >&2; exit 2;;
esac
""",
}


class FakeGpus:
    """Two GPUs of a maker, whose program is in `bin`."""

    def __init__(self, folder: Path, bin_folder: Path, maker: Maker = "nvidia-smi") -> None:
        self.folder, self.names = folder, NAMES.get(maker, ("0", "1"))
        folder.mkdir(parents=True)
        bin_folder.mkdir(parents=True, exist_ok=True)
        for name in self.names:
            (folder / f"cap-{name}").write_text(f"{DEFAULT_W}\n")
        script = bin_folder / maker.removesuffix("-7.2")
        head = _HEAD.format(folder=folder, least=LEAST_W, most=MOST_W)
        script.write_text(head + _SCRIPTS[maker])
        script.chmod(0o755)

    @property
    def caps(self) -> tuple[float, ...]:
        """The cap of each GPU now, in watts."""
        return tuple(float((self.folder / f"cap-{name}").read_text()) for name in self.names)

    def turn_stubborn(self) -> None:
        """Ignore every cap from now on."""
        (self.folder / "stubborn").touch()
