"""Repeats of one measurement: how many to run, and how exactly they say its mean."""

from statistics import NormalDist

# Student's t, the 0.975 quantile, for 1 to 30 degrees of freedom, as printed in tables.
_T_975 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)


def t_975(degrees: int) -> float:
    """The 0.975 quantile of Student's t with so many degrees of freedom, from 1, right to three decimals.

    Above 30 it is the expansion of Cornish and Fisher.
    """
    if degrees <= len(_T_975):
        return _T_975[degrees - 1]
    z = NormalDist().inv_cdf(0.975)
    return z + (z**3 + z) / (4 * degrees) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)
