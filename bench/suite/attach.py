"""A suite for a server that already runs: its workloads stay; the server is as found, and nothing of it is ours."""

from collections.abc import Iterator

from bench.suite.endpoint import Endpoint
from bench.suite.engine import Engine
from bench.suite.machine import Machine
from bench.suite.suite import Suite

NAME = "endpoint"
AS_FOUND = "as found"  # the version of an engine that is only observed, not chosen
METER = "meter"


def reasons_against(suite: Suite) -> Iterator[str]:
    """Why a suite cannot be measured on a server that already runs; its key first."""
    for entry in suite.scenarios:
        if entry.engine is not None:
            yield f"scenario {entry.name} asks for an engine of its own, and a server that already runs has one"
        if entry.model is not None or entry.machine is not None:
            yield f"scenario {entry.name} asks for a model or a machine of its own; an endpoint is one of each"
        if entry.driver != METER:
            yield f'scenario {entry.name} has the driver {entry.driver}, which needs our own engine: use "{METER}"'
    of_machine = {
        "ladder starts other servers where memory runs out": suite.ladder,
        "power sets caps on the GPUs of a host of your own": suite.power,
        "control starts a server of its own": suite.control,
        "quality.lm_eval asks its tasks of a server on the machine": suite.quality.lm_eval,
    }
    yield from (why for why, table in of_machine.items() if table)


def attached(suite: Suite, url: str) -> Suite:
    """The suite as it is measured at a URL; its scenarios get ids of their own for each host and port."""
    known = suite.endpoint or Endpoint()
    model = {"name": known.model or suite.model.name, "precision": known.precision or suite.model.precision}
    return suite.model_copy(
        update={
            "endpoint": known,
            "engine": Engine(name=NAME, version=AS_FOUND, max_model_len=suite.engine.max_model_len),
            "model": suite.model.not_kept().model_copy(update=model),
            "machine": Machine(
                kind=f"{NAME} {url.partition('://')[2]}",
                gpu=known.gpu,
                gpu_count=known.gpu_count,
                lease_minutes=suite.machine.lease_minutes,
            ),
            "ladder": (),
        }
    )
