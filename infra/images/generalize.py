"""Make a machine fit to be copied: what is of this machine, this lease or anybody's secret is taken off it."""

from bench.machine.cloud_init import forgetting_script
from infra.remote.deploy import HOME
from infra.remote.host import Host

TIMEOUT_S = 300.0
# What is software: environments, and what they were built from. Images are where docker keeps them.
KEPT = ("venv", "cache/engines", "host.env")

# A scratch disk below our folder is another disk, which no image holds, and cannot be removed while it is mounted.
_UNMOUNT = """while read -r _ at _; do
case "$at" in "$PWD/{home}/"*) umount "$at" ;; esac
done < /proc/mounts"""
# Nobody can log in anew afterwards, and cloud-init takes the copy for the new machine that it is.
_STRIP = """cd "${HOME:-/root}"
rm -f .bash_history .ssh/authorized_keys
if [ "${HOME:-/root}" = /root ] && [ -d /run/systemd/system ]; then
rm -f /etc/ssh/ssh_host_*
cloud-init clean --logs --machine-id
journalctl --rotate && journalctl --vacuum-time=1s
fi
sync"""


def generalize(host: Host) -> None:
    """Take everything off a machine but its software; the connection that says so is the last that is let in."""
    host.output_of(generalize_script(), timeout_s=TIMEOUT_S)


def generalize_script() -> str:
    """What a machine is told: a shell script, run in the home folder."""
    aside = f"{HOME}.software"
    keep = [
        f"if [ -e {HOME}/{name} ]; then mkdir -p {aside}/$(dirname {name}) && mv {HOME}/{name} {aside}/{name}; fi"
        for name in KEPT
    ]
    away = [_UNMOUNT.replace("{home}", HOME), f"rm -rf {HOME}", f"mv {aside} {HOME}"]
    return "\n".join([forgetting_script(), f"mkdir -p {aside}", *keep, *away, _STRIP])
