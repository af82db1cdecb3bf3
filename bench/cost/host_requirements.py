"""What a suite requires of a host that is not rented, in words: shown by a plan, checked when a night starts."""

from collections.abc import Iterator
from dataclasses import dataclass

from bench.catalog.catalog import Catalog
from bench.cost.replica import model_bytes
from bench.engines.by_name import ENGINES
from bench.suite.suite import Suite

SPARE = 1.05  # a download asks for so much of its size free


@dataclass(frozen=True)
class Need:
    """One requirement of the host, and the suite's key that requires it."""

    what: str
    needed: str
    asked_by: str


def needs_of(suite: Suite, catalog: Catalog) -> tuple[Need, ...]:
    """Every requirement, in the order in which a night checks them."""
    return (*_gpus(suite), *_engine(suite), *_room(suite, catalog), _client())


def _gpus(suite: Suite) -> Iterator[Need]:
    machine = suite.machine
    if machine.gpu_count:
        gpu = machine.gpu or "of any kind"
        yield Need("GPUs", f"{machine.gpu_count} x {gpu}, and no other process uses them", "machine.gpu, gpu_count")


def _engine(suite: Suite) -> Iterator[Need]:
    engine = suite.engine
    if engine.image is not None:
        yield Need("docker", f"the daemon must answer this user; {engine.image} is pulled", "engine.image")
        return
    named = f"the executable that {ENGINES[engine.name].SETTING} names in nightbench/host.env"
    otherwise = "its CPU build cannot use a GPU" if suite.machine.gpu_count else "otherwise its CPU build is installed"
    yield Need(f"{engine.name} {engine.version}", f"{named}; {otherwise}", "engine.version")


def _room(suite: Suite, catalog: Catalog) -> Iterator[Need]:
    kind, _, rest = suite.model.source.partition(":")
    where = suite.model.cache or "nightbench/data/models of the user's home"
    size = model_bytes(suite, catalog)
    if kind == "path":
        yield Need("model", f"the folder {rest} must exist", "model.source")
    elif kind == "hf":
        free = "space for the weights" if size is None else f"{size * SPARE / 1e9:.0f} GB free"
        yield Need("disk", f"{free} in {where}", "model.source" if suite.model.cache is None else "model.cache")
        yield Need("network", "the model hub must be reachable, unless the weights are cached", "model.source")


def _client() -> Need:
    return Need("load client", "Python 3.11 to 3.13 with venv, and a C compiler (cc) to calibrate it", "every suite")
