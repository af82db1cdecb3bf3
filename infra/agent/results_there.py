"""Copy the results of a machine here: its own by name, each whole and on disk here before it is deleted there."""

import shlex
import shutil
from dataclasses import replace
from pathlib import Path

from bench.errors import RefusedFileError, TransferError
from bench.machine_nights import RefusedResults
from bench.manifest import MANIFEST
from bench.record import PlannedRun
from infra.agent.own_results import OwnResults, own_results
from infra.remote.host import Host
from infra.remote.offered import FORMAT, KINDS, listed_entries
from infra.reporting import Say
from infra.storage import store
from infra.storage.accepted import NIGHT_LIMITS, RUN_LIMITS, Limits
from nights.durable import rename

# What is whole, and every link, since none of ours is one; names that begin with a dot are unfinished.
_LIST = rf"""cd {{folder}} 2>/dev/null || exit 0
find . -mindepth 1 -maxdepth 3 -name '.*' -prune -o \( -path './*/*/MANIFEST.sha256' -o -path './servers/*.log' \
-o -path './calibration*.json' -o -type l \) -printf '{FORMAT}'"""
NAME_CHARS, NAMES = 200, 100  # of what is refused; a machine may offer any number of long names
Entry = tuple[str, int, str]  # kind, size, name


class ResultsThere:
    """The results of a night in the folder `there` of one of its machines, which may offer anything."""

    def __init__(self, there: str, data: Path, night: str, machine: str | None, lease_id: str) -> None:
        self.there = there
        self._data, self._night, self._machine, self._lease_id = data, night, machine, lease_id
        self._here = store.night_folder(data, night)
        self._given: dict[tuple[str, int], PlannedRun] = {}
        self._refused: list[str] = []

    @property
    def has_refused(self) -> bool:
        """Whether the machine offered what is not its own."""
        return bool(self._refused)

    def give(self, run: PlannedRun) -> None:
        """Note that this machine is to measure a run, so that it may hand back its results."""
        self._given[run.scenario.scenario_id, run.repeat] = run

    def collect(self, host: Host, say: Say) -> None:
        """Copy each whole run folder here, and each log and table that has grown.

        Whatever else the machine offers is left there, and named once to `say` and in a file of the night. Raises
        RefusedFileError at the end where files of a run of this machine are not accepted.
        """
        waiting = list(listed_entries(host.output_of(_LIST.format(folder=shlex.quote(self.there)))))
        damaged = list[RefusedFileError]()
        while waiting:  # a run that is here now may show which run follows it
            own = own_results(self._data, self._night, self._machine, self._given.values())
            mine = [entry for entry in waiting if _is_own(own, entry)]
            damaged += [error for entry in mine if (error := self._try(host, own, entry))]
            waiting = [entry for entry in waiting if entry not in mine]
            if not mine:
                break
        refused = [entry for entry in waiting if entry[2] not in self._refused]
        for entry in refused:
            self._refuse(host, entry, say)
        if refused:
            self._store_refused()
        if damaged:
            raise damaged[0]

    def _refuse(self, host: Host, entry: Entry, say: Say) -> None:
        kind, _size, name = entry
        what = "" if kind == "f" else f", which is {KINDS.get(kind, 'not a file')}"
        self._refused.append(name)
        say(
            f"{self._origin(host)} offers {name[:NAME_CHARS]!r}{what}: the plan gave this machine no such result; "
            "it was not copied and is left there"
        )

    def _store_refused(self) -> None:
        """Write what was refused where the load finds it, so that the runs of this machine are doubted."""
        names = tuple(name[:NAME_CHARS] for name in self._refused[:NAMES])
        found = RefusedResults(lease_id=self._lease_id, count=len(self._refused), names=names)
        store.write_json(store.refused_file(self._data, self._night, self._lease_id), found)

    def _try(self, host: Host, own: OwnResults, entry: Entry) -> RefusedFileError | None:
        """Copy one result of this machine, unless it is here; the error where its files are not accepted."""
        _kind, size, name = entry
        run = name.removesuffix(f"/{MANIFEST}")
        try:
            if own.has_file(name):
                if not _has_size(self._here / name, size):
                    self._fetch_file(host, f"{self.there}/{name}", self._here / name)
            elif not (self._here / run).exists():
                self._fetch_run(host, f"{self.there}/{run}", self._here / run)
        except RefusedFileError as error:
            return error
        return None

    def _origin(self, host: Host) -> str:
        return f"{host.access}:{self.there}"

    def _limits(self) -> Limits:
        """What is accepted of one run, while the night's folder here has room for it."""
        here = sum(path.stat().st_size for path in self._here.rglob("*") if path.is_file())
        return replace(RUN_LIMITS, total_bytes=min(RUN_LIMITS.total_bytes, NIGHT_LIMITS.total_bytes - here))

    def _fetch_run(self, host: Host, source: str, target: Path) -> None:
        """Copy one run folder here, compare it with its manifest, and delete it there."""
        partial = target.with_name(f"{store.PARTIAL}{target.name}")
        shutil.rmtree(partial, ignore_errors=True)  # from a night that was killed while copying
        host.get(source, partial, self._limits())
        if not store.is_whole(partial):
            shutil.rmtree(partial)
            raise TransferError(f"{source} on {host.access} does not match its {MANIFEST} after the copy")
        rename(partial, target)
        host.output_of(f"rm -rf {shlex.quote(source)}")  # only now, since it is on disk here

    def _fetch_file(self, host: Host, source: str, target: Path) -> None:
        aside = target.with_name(f".{target.name}.arriving")
        aside.unlink(missing_ok=True)
        host.get(source, aside, self._limits())
        rename(aside, target)


def _is_own(own: OwnResults, entry: Entry) -> bool:
    kind, _size, name = entry
    run = name.removesuffix(f"/{MANIFEST}")
    return kind == "f" and (own.has_file(name) or (run != name and own.has_run(run)))


def _has_size(file: Path, size: int) -> bool:
    return file.exists() and file.stat().st_size == size
