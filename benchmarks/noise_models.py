"""Simulated series of nights: the noise that lasts or does not, the slow hosts, and a control that shares the host."""

from collections.abc import Callable

import numpy as np

from bench.metrics import Floats

LEVEL = 2000.0
SLOW_SHARE, SLOW_BY = 0.02, 0.9
Noise = Callable[[np.random.Generator, int, float], Floats]


def gaussian(random: np.random.Generator, nights: int, cv: float) -> Floats:
    """Independent nights."""
    return np.asarray(random.normal(0, cv, nights))


def heavy_tail(random: np.random.Generator, nights: int, cv: float) -> Floats:
    """Student's t with three degrees of freedom, scaled to the sd."""
    return np.asarray(cv * random.standard_t(3, nights) / np.sqrt(3))


def ar(random: np.random.Generator, nights: int, cv: float, rho: float = 0.4) -> Floats:
    """Each night is like the one before."""
    found = random.normal(0, cv, nights)
    for night in range(1, nights):
        found[night] = rho * found[night - 1] + np.sqrt(1 - rho**2) * found[night]
    return np.asarray(found)


def slow_hosts(random: np.random.Generator, nights: int, cv: float) -> Floats:
    """Two nights in a hundred run on a host that is 10 % slower."""
    return np.asarray(random.normal(0, cv, nights) + np.where(random.random(nights) < SLOW_SHARE, np.log(SLOW_BY), 0.0))


MODELS: dict[str, Noise] = {"gaussian": gaussian, "heavy tail": heavy_tail, "AR(0.4)": ar, "2 % slow hosts": slow_hosts}


def series(noise: Noise, seed: tuple[int, ...], nights: int = 365, cv: float = 0.02) -> Floats:
    """The values of a series without a change."""
    return np.asarray(LEVEL * np.exp(noise(np.random.default_rng(seed), nights, cv)))
