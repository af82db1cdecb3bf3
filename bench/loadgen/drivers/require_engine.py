"""Refuse a suite whose load driver is a part of another engine than the one that it drives."""

from bench.errors import SuiteError
from bench.loadgen.drivers.by_name import DRIVERS
from bench.suite.source import SuiteSource
from bench.suite.suite import Suite
from bench.suite.workload import COMMAND


def require_driver_engines(suite: Suite, source: SuiteSource) -> None:
    """Raise SuiteError, with file and line, for a driver that is a part of another engine."""
    for index, entry in enumerate(suite.scenarios):
        engine, part_of = (entry.engine or suite.engine).name, DRIVERS[entry.driver].ENGINE
        if part_of not in (None, engine):
            at = source.at(("scenarios", index, "driver"))
            fitting = (name for name, one in DRIVERS.items() if one.ENGINE in (None, engine) and name != COMMAND)
            others = " or ".join(f'"{name}"' for name in fitting)
            raise SuiteError(
                f"{at}: the driver {entry.driver} is a part of {part_of}, and engine.name is {engine}: "
                f"use driver = {others}"
            )
