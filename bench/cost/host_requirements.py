"""What a suite asks of a host that nobody rents for it, in words: told in a plan, found out when a night begins."""

from collections.abc import Iterator
from dataclasses import dataclass

from bench.catalog.catalog import Catalog
from bench.cost.estimate import model_bytes
from bench.suite.suite import Suite

SPARE = 1.05  # a download asks for so much of its size free


@dataclass(frozen=True)
class Need:
    """One thing that the host must have, and what of the suite asks for it."""

    what: str
    needed: str
    asked_by: str


def needs_of(suite: Suite, catalog: Catalog) -> tuple[Need, ...]:
    """Everything, what a night looks at first first."""
    return (*_gpus(suite), *_engine(suite), *_room(suite, catalog), _client())


def _gpus(suite: Suite) -> Iterator[Need]:
    machine = suite.machine
    if machine.gpu_count:
        gpu = machine.gpu or "of any kind"
        yield Need("GPUs", f"{machine.gpu_count} x {gpu}, with no other process on them", "machine.gpu, gpu_count")


def _engine(suite: Suite) -> Iterator[Need]:
    engine = suite.engine
    if engine.image is not None:
        yield Need("docker", f"its daemon answers this user; {engine.image} is pulled", "engine.image")
        return
    named = "the engine that NIGHTBENCH_VLLM_EXECUTABLE names in nightbench/host.env"
    otherwise = "its CPU build is of no use to a GPU" if suite.machine.gpu_count else "else its CPU build is installed"
    yield Need(f"{engine.name} {engine.version}", f"{named}; {otherwise}", "engine.version")


def _room(suite: Suite, catalog: Catalog) -> Iterator[Need]:
    kind, _, rest = suite.model.source.partition(":")
    where = suite.model.cache or "nightbench/data/models of the user's home"
    size = model_bytes(suite, catalog)
    if kind == "path":
        yield Need("model", f"its folder is there: {rest}", "model.source")
    elif kind == "hf":
        free = "room for the weights" if size is None else f"{size * SPARE / 1e9:.0f} GB free"
        yield Need("disk", f"{free} in {where}", "model.source" if suite.model.cache is None else "model.cache")
        yield Need("network", "it reaches the model hub, unless the weights are there", "model.source")


def _client() -> Need:
    return Need("load client", "Python 3.11 to 3.13 with venv, and a C compiler (cc) to calibrate it", "every suite")
