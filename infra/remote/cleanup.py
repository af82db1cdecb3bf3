"""End every process on a machine that was started under a lease."""

import shlex

from infra.processes.detached import MARK
from infra.remote.host import Host

# A container is docker's child: ending our processes would not end it. Every other process of a lease has the lease's
# mark in its environment, whatever session it is in. grep shows no arguments of processes, which may hold secrets.
_END_MARKED = """if command -v docker > /dev/null; then
  docker ps --all --quiet --filter name=^/?nb-{lease_id}- | xargs --no-run-if-empty docker rm --force
fi
marked() {{ grep -lzxF {mark} /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3; }}
kill -TERM $(marked) 2>/dev/null
i=0; while [ -n "$(marked)" ] && [ $i -lt {tenths} ]; do sleep 0.1; i=$((i+1)); done
i=0; while [ -n "$(marked)" ] && [ $i -lt 50 ]; do kill -KILL $(marked) 2>/dev/null; sleep 0.1; i=$((i+1)); done
[ -z "$(marked)" ]"""
END_PATIENCE_S = 10.0


def end_marked(host: Host, lease_id: str) -> None:
    """End every process of a lease on a machine; none is left when this returns, and it may be repeated."""
    mark = shlex.quote(f"{MARK}={lease_id}")
    script = _END_MARKED.format(lease_id=lease_id, mark=mark, tenths=round(END_PATIENCE_S * 10))
    host.output_of(script, timeout_s=12 * END_PATIENCE_S)
