"""The search for what made a confirmed change, as a suite asks for it."""

from pydantic import Field

from bench.frozen import Frozen


class Bisect(Frozen):
    """What the nights of a search may cost together; each runs only the scenario that moved."""

    usd: float = Field(gt=0)  # for each event; a machine without a price costs nothing
