"""The model and the GPUs of one replica, and the bytes of its checkpoint, as far as the catalogue knows them."""

import re

from bench.catalog.catalog import Catalog
from bench.catalog.rows import CatalogModel, MachineKind
from bench.engines.config import parallel_sizes, parse_flags
from bench.physics import Group, checkpoint_bytes
from bench.suite.engine import Engine
from bench.suite.machine import Machine
from bench.suite.model import Model
from bench.suite.suite import Suite


def replica_of(
    model: Model, engine: Engine, machine: Machine, size: MachineKind | None, catalog: Catalog
) -> tuple[CatalogModel, Group] | None:
    """The model and the GPUs of one replica; None where the catalogue lacks one of them.

    `size` is the rented kind of machine; None: the GPU is the one that `machine` names.
    """
    known, gpu = catalog.model(model.source), catalog.gpu(size.gpu if size else machine.gpu)
    if known is None or gpu is None:
        return None
    flags = parse_flags(engine.flags)
    kv_bytes = 1.0 if flags.get("--kv-cache-dtype", "").startswith("fp8") else 2.0
    sizes = parallel_sizes(flags)
    return known, Group(gpu, sizes.tp_size * sizes.pp_size, model.precision, kv_bytes, sizes.pp_size)


def weights_bytes(model: Model, engine: Engine, catalog: Catalog) -> float | None:
    """What the checkpoint of a model takes on a disk; None where the catalogue does not know the model."""
    known = catalog.model(model.source)
    return checkpoint_bytes(known, _checkpoint_precision(model, engine)) if known else None


def model_bytes(suite: Suite, catalog: Catalog) -> float | None:
    """What the models of a suite take on a disk together; None where the catalogue lacks one of them."""
    sizes = [weights_bytes(model, suite.with_model(model).engine, catalog) for model in suite.models]
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None


def _checkpoint_precision(model: Model, engine: Engine) -> str:
    # The name of a quantized checkpoint names its precision. Otherwise the engine may make it from one of 16 bits.
    is_small = re.search(r"fp8|fp4|int4|awq|gptq", model.source.lower()) is not None
    is_quantised = "--quantization" in parse_flags(engine.flags)
    return "bf16" if is_quantised and not is_small else model.precision
