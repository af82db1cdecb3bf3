"""The load drivers that a suite can name: `DRIVERS[workload.driver]` is the file with what differs between them."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from bench.loadgen.batch_report import BatchReport
from bench.loadgen.drivers import command, meter, vllm_bench, vllm_latency, vllm_rs, vllm_throughput
from bench.loadgen.drivers.module import AnyDriver, DriverModule, OfflineModule
from bench.loadgen.report import LoadReport
from bench.suite.scenario import Scenario

# To add a driver, write its file, name it here and in bench/suite/workload.py.
_OF_SERVERS: tuple[DriverModule, ...] = (meter, vllm_bench, vllm_rs)
_OFFLINE: tuple[OfflineModule, ...] = (vllm_throughput, vllm_latency)
OF_SERVERS: Mapping[str, DriverModule] = MappingProxyType({one.NAME: one for one in _OF_SERVERS})
OFFLINE: Mapping[str, OfflineModule] = MappingProxyType({one.NAME: one for one in _OFFLINE})
DRIVERS: Mapping[str, AnyDriver] = MappingProxyType({**OF_SERVERS, **OFFLINE, command.NAME: command})


def report_files(scenario: Scenario) -> tuple[str, ...]:
    """The files that a scenario's driver leaves in `load/`, in the order they are read."""
    return DRIVERS[scenario.workload.driver].REPORT_FILES


def read_report(scenario: Scenario, parts: Sequence[bytes]) -> LoadReport:
    """Read the contents of a scenario's report files; raises UnreadableResultError if they are not one."""
    return OF_SERVERS[scenario.workload.driver].read(scenario, parts)


def read_batches(scenario: Scenario, parts: Sequence[bytes]) -> BatchReport:
    """The same of a scenario whose driver is offline."""
    return OFFLINE[scenario.workload.driver].read(scenario, parts)
