"""Reads what the probes of a search showed, out of their run folders."""

from functools import lru_cache
from pathlib import Path

from bench.errors import UnreadableResultError
from bench.loadgen.drivers.by_name import read_report, report_files
from bench.record import RunRecord
from bench.search.probe import Probe, failed_probe, probe_of
from bench.suite.scenario import Scenario
from bench.suite.slo import Slo


def read_probe(folder: Path, scenario: Scenario, slo: Slo | None) -> Probe:
    """What a run showed; of one that failed or cannot be read, every request counts as failed."""
    found = _read(folder, slo)
    return failed_probe(scenario, found) if isinstance(found, str) else found


@lru_cache(maxsize=256)  # a folder with its final name never changes
def _read(folder: Path, slo: Slo | None) -> Probe | str:
    """The probe, or why there is none."""
    try:
        record = RunRecord.model_validate_json((folder / "record.json").read_bytes())
        if record.outcome != "measured":
            return record.reason or "the run failed"
        scenario = record.asked
        report = read_report(scenario, report_bytes(folder, scenario))
    except (OSError, UnreadableResultError, ValueError, KeyError) as error:
        return f"the results of {folder} cannot be read: {str(error).splitlines()[0]}"
    return probe_of(scenario, report.requests, slo)


def report_bytes(folder: Path, scenario: Scenario) -> list[bytes]:
    """The files of a run's report; raises OSError where one is missing."""
    return [_bytes_of(folder / "load" / name) for name in report_files(scenario)]


def _bytes_of(path: Path) -> bytes:
    """The content of a report file; a run without a token event writes no events.bin."""
    return b"" if path.name == "events.bin" and not path.exists() else path.read_bytes()
