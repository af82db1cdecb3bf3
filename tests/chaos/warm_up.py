"""Imported by the process that children are forked from: what a first call builds is built once, before the fork."""

import atexit
import gc
import logging
import tempfile
from pathlib import Path

from tests.chaos.flow import reap_once
from tests.chaos.world import a_world


def warm_up() -> None:
    """Run one round of the reaper, and keep all that is in memory now out of the children's garbage collection."""
    logging.disable()
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder, a_world(Path(folder) / "night") as world:
        reap_once(world.place)
    logging.disable(logging.NOTSET)
    gc.collect()
    gc.freeze()
    gc.disable()  # a child lives for a second
    atexit.register(gc.unfreeze)  # or DuckDB's library reports what it believes to be leaked


warm_up()
