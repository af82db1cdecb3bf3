"""Generalize a machine before its disk is copied: remove keys, secrets, and what belongs to one machine or lease."""

from bench.machine.cloud_init import forgetting_script
from infra.remote.deploy import HOME
from infra.remote.host import Host

TIMEOUT_S = 300.0
# The software: environments, and what they were built from. Container images are in docker's own folder.
KEPT = ("venv", "cache/engines", "host.env")

# A scratch disk mounted below our folder is not part of the image, and blocks the folder's removal.
_UNMOUNT = """while read -r _ at _; do
case "$at" in "$PWD/{home}/"*) umount "$at" ;; esac
done < /proc/mounts"""
# Afterwards no user can log in, and cloud-init treats the copy as a new machine.
_STRIP = """cd "${HOME:-/root}"
rm -f .bash_history .ssh/authorized_keys
if [ "${HOME:-/root}" = /root ] && [ -d /run/systemd/system ]; then
rm -f /etc/ssh/ssh_host_*
cloud-init clean --logs --machine-id
journalctl --rotate && journalctl --vacuum-time=1s
fi
sync"""


def generalize(host: Host) -> None:
    """Remove everything from a machine but its software; no later connection can log in."""
    host.output_of(generalize_script(), timeout_s=TIMEOUT_S)


def generalize_script() -> str:
    """The shell script that generalizes a machine, run in the home folder."""
    aside = f"{HOME}.software"
    keep = [
        f"if [ -e {HOME}/{name} ]; then mkdir -p {aside}/$(dirname {name}) && mv {HOME}/{name} {aside}/{name}; fi"
        for name in KEPT
    ]
    swap = [_UNMOUNT.replace("{home}", HOME), f"rm -rf {HOME}", f"mv {aside} {HOME}"]
    return "\n".join([forgetting_script(), f"mkdir -p {aside}", *keep, *swap, _STRIP])
