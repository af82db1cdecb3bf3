"""The load drivers that a suite can name: `DRIVERS[workload.driver]` is the file with what differs between them."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from bench.loadgen.drivers import meter, vllm_bench, vllm_rs
from bench.loadgen.drivers.module import DriverModule
from bench.loadgen.report import LoadReport
from bench.suite.scenario import Scenario

# To add a driver, write its file, name it here and in bench/suite/workload.py.
_FILES: tuple[DriverModule, ...] = (meter, vllm_bench, vllm_rs)
DRIVERS: Mapping[str, DriverModule] = MappingProxyType({one.NAME: one for one in _FILES})


def report_files(scenario: Scenario) -> tuple[str, ...]:
    """The files that a scenario's driver leaves in `load/`, in the order they are read."""
    return DRIVERS[scenario.workload.driver].REPORT_FILES


def read_report(scenario: Scenario, parts: Sequence[bytes]) -> LoadReport:
    """Read the contents of a scenario's report files; raises UnreadableResultError where they are no such report."""
    return DRIVERS[scenario.workload.driver].read(scenario, parts)
