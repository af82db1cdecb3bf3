"""What fails of the computer itself in a random night, beyond its clock and its ledger."""

import random
import signal
from dataclasses import dataclass

FIRST_SEED = 40_000  # earlier seeds mean the nights that they meant before these faults were drawn
KILLS = ("S1", "S4", "S7", "S8", "S9", "S9", "S9", "S10", "S11", "S12")


@dataclass(frozen=True)
class ComputerFaults:
    """What fails of the computer."""

    loses_power: bool = False
    dies_after: str = "S9"  # of a night that loses its power: it is the end of every process
    dies_by: int = signal.SIGKILL
    is_resumed: bool = False  # once the computer is on again


def draw_computer_faults(seed: int) -> ComputerFaults:
    """Draw the faults of a seed; earlier seeds have none."""
    dice = random.Random(f"power of {seed}")
    if seed < FIRST_SEED or dice.random() > 0.15:
        return ComputerFaults()
    return ComputerFaults(loses_power=True, dies_after=dice.choice(KILLS), is_resumed=dice.random() < 0.7)
