"""What keeps a part of the service running: systemd, where the user has a manager of it, else a detached process."""

import hashlib
import os
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import psutil

from bench.errors import ServerStartError, UsageError
from flows.service.parts import CHECKOUT, MARK, Part, Service
from infra.clock import SystemClock, poll
from infra.processes import detached

RECORDED_S = 180.0  # for a process that was started until its pid file is there; a disk that is busy takes seconds
STOP_PATIENCE_S = 60.0  # a night that is stopped releases its machine in this time
RUN = "PREFECT__FLOW_RUN_ID"  # in the environment that a worker gives to the process of a run
OWN = "NIGHTBENCH_"  # begins the names of our settings
RUNTIME = "XDG_RUNTIME_DIR"  # where the manager's bus is; a shell of cron or su lacks it
RUNTIMES = Path("/run/user")
_RUNS = ("running", "degraded", "starting")
_SYSTEMCTL = ("systemctl", "--user")


class Keeper(Protocol):
    """Starts and stops parts."""

    def is_running(self, part: Part) -> bool:
        """Whether the part runs."""

    def start(self, part: Part) -> None:
        """Start a part that does not run."""

    def stop(self, part: Part) -> None:
        """Stop a part, and whatever it left; it may be stopped already."""

    def log(self, part: Part) -> str:
        """Where to read what the part prints."""

    def recent_log(self, part: Part) -> tuple[str, float]:
        """What the part printed of late, and in how many hours."""


@dataclass(frozen=True)
class Detached:
    """Processes in sessions of their own; nothing restarts them."""

    folder: Path

    def is_running(self, part: Part) -> bool:
        """Whether the process of the pid file runs."""
        return detached.is_running(self._pid_file(part))

    def start(self, part: Part) -> None:
        """Start it with a new log; the log before is kept as `.log.1`."""
        log = self.log_file(part)
        if log.exists():
            log.replace(log.with_suffix(".log.1"))
        pid_file = self._pid_file(part)
        pid = detached.start_detached(part.argv, part.environment, pid_file, log, cwd=CHECKOUT)
        # A process records itself, soon after this call; until then it is not known to run.
        poll(
            SystemClock(),
            detached.POLL_S,
            lambda: detached.is_running(pid_file) or not detached.is_alive(pid),
            RECORDED_S,
        )

    def stop(self, part: Part) -> None:
        """Terminate it, wait, and kill what is left of its session."""
        session = detached.session_of(self._pid_file(part))
        if session is not None:
            detached.end_session(session, STOP_PATIENCE_S)
        self._pid_file(part).unlink(missing_ok=True)

    def log(self, part: Part) -> str:
        """The log file."""
        return str(self.log_file(part))

    def recent_log(self, part: Part) -> tuple[str, float]:
        """Since it was started; nothing where it was not."""
        log, pid_file = self.log_file(part), self._pid_file(part)
        if not (log.exists() and pid_file.exists()):
            return "", 1.0
        hours = (datetime.now(UTC).timestamp() - pid_file.stat().st_mtime) / 3600
        return log.read_text("utf-8", errors="replace"), max(1.0, hours)

    def log_file(self, part: Part) -> Path:
        """The file that gets what the part prints."""
        return self.folder / f"{part.name}.log"

    def _pid_file(self, part: Part) -> Path:
        return self.folder / f"{part.name}.pid"


@dataclass(frozen=True)
class Systemd:
    """Units of the user's systemd, which restarts a part that fails and starts all of them at boot."""

    folder: Path
    units: Path

    def is_running(self, part: Part) -> bool:
        """Whether the unit is active."""
        return _systemctl("is-active", "--quiet", self._unit(part.name)).returncode == 0

    def start(self, part: Part) -> None:
        """Write the unit and its environment, and start it now and at each boot."""
        environment = self.folder / f"{part.name}.env"
        environment.touch(mode=0o600)
        environment.write_text(environment_file(part), encoding="utf-8")
        self.units.mkdir(parents=True, exist_ok=True)
        unit = unit_file(part, environment, after=part.after and self._unit(part.after))
        (self.units / self._unit(part.name)).write_text(unit, encoding="utf-8")
        _systemctl("daemon-reload")
        done = _systemctl("enable", "--now", self._unit(part.name))
        if done.returncode:
            raise ServerStartError(f"systemd did not start {self._unit(part.name)}: {done.stderr.strip()}")

    def stop(self, part: Part) -> None:
        """Stop the unit, also at the next boot."""
        _systemctl("disable", "--now", self._unit(part.name))

    def is_enabled(self, name: str) -> bool:
        """Whether the part of this name starts at each boot, also where no manager can be reached."""
        return (self.units / "default.target.wants" / self._unit(name)).is_symlink()

    def log(self, part: Part) -> str:
        """The command that prints the journal."""
        return f"journalctl --user --unit {self._unit(part.name)}"

    def recent_log(self, part: Part) -> tuple[str, float]:
        """Of the last hour."""
        argv = ["journalctl", "--user", "--unit", self._unit(part.name), "--output", "cat", "--since", "-1h"]
        return _run(argv, STOP_PATIENCE_S).stdout, 1.0

    def _unit(self, name: str) -> str:
        """The name of a part's unit; each data folder has units of its own."""
        return f"nightbench-{name}-{hashlib.sha256(bytes(self.folder)).hexdigest()[:8]}.service"


def keeper_of(service: Service) -> Keeper:
    """Systemd where the user's manager runs, else detached processes.

    Raises UsageError where systemd keeps this service and its manager does not answer: nothing would be known of it.
    """
    systemd = Systemd(service.folder, Path.home() / ".config" / "systemd" / "user")
    if _has_systemd():
        return systemd
    if systemd.is_enabled("server"):
        raise UsageError(
            f"systemd keeps the service of {service.data}, and its manager of this user does not answer in this shell: "
            "start it (`loginctl enable-linger` starts it at boot), or set XDG_RUNTIME_DIR to the folder of its bus"
        )
    return Detached(service.folder)


def unit_file(part: Part, environment: Path, after: str | None) -> str:
    """The unit of a part, which starts `after` the unit of the part that it needs.

    A stop signals the part alone. The watchdog of a lease, which a night starts, must outlive its worker; without
    KillMode a stop kills every process that the unit has started.
    """
    order = f"After={after}\n" if after else ""
    return f"""[Unit]
Description=Nightbench: {part.does}
{order}
[Service]
ExecStart={" ".join(map(_word, part.argv))}
EnvironmentFile={str(environment).replace("%", "%%")}
WorkingDirectory={str(CHECKOUT).replace("%", "%%")}
Restart=on-failure
RestartSec=5
KillMode=process
TimeoutStopSec={STOP_PATIENCE_S:.0f}

[Install]
WantedBy=default.target
"""


def environment_file(part: Part) -> str:
    """The environment of a part, a variable a line; one with a line break is left out, since systemd has no form.

    A line break in a setting of ours is as good as a space: it stands between addresses, or in JSON.
    """
    ours = {name: " ".join(value.splitlines()) for name, value in part.environment.items() if name.startswith(OWN)}
    lines = [f"{name}={_in_quotes(value)}" for name, value in sorted({**part.environment, **ours}.items())
             if "\n" not in value]  # fmt: skip
    return "\n".join(lines) + "\n"


def end_worker_processes(service: Service) -> None:
    """End a worker and its runs, such as those of a worker that was killed; the watchdogs of leases are not marked."""
    detached.end(detached.marked(str(service.data), MARK), STOP_PATIENCE_S)


def end_left_worker(service: Service) -> set[str]:
    """End a worker that was left; return the ids of the flow runs whose processes go on without their worker."""
    runs = {process: _run_of(process) for process in detached.marked(str(service.data), MARK)}
    detached.end([process for process, run in runs.items() if run is None], STOP_PATIENCE_S)
    return {run for run in runs.values() if run is not None}


def _run_of(process: psutil.Process) -> str | None:
    """The flow run of a process; None: it is a worker's, or has exited."""
    try:
        return process.environ().get(RUN)
    except psutil.Error:
        return None


def _word(text: str) -> str:
    """A word of a command line in a unit, where `%` and `$` are special, too."""
    return _in_quotes(text.replace("%", "%%").replace("$", "$$"))


def _in_quotes(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _has_systemd() -> bool:
    try:
        return _systemctl("is-system-running").stdout.strip() in _RUNS
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return False


def _systemctl(*arguments: str) -> "subprocess.CompletedProcess[str]":
    patience_s = STOP_PATIENCE_S + 30.0  # a stop returns only after systemd has killed what does not end by itself
    return _run([*_SYSTEMCTL, *arguments], patience_s)


def _run(argv: list[str], patience_s: float) -> "subprocess.CompletedProcess[str]":
    """Run a program of systemd with the way to the manager's bus, which a shell of cron does not have."""
    usual = RUNTIMES / str(os.getuid())
    bus = {RUNTIME: str(usual)} if not os.environ.get(RUNTIME) and usual.is_dir() else {}
    return subprocess.run(
        argv, env={**os.environ, **bus}, capture_output=True, text=True, timeout=patience_s, check=False
    )
