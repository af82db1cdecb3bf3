"""How far two numbers are apart beyond what printing them explains: half a unit of the last digit of each."""

from decimal import Decimal

MULTIPLES = range(2, 65)  # of instances that a result is scaled up from, or runs that it is a sum of
DIGITS = 12  # so many and more are not rounded; fewer than 15, for a change of unit spoils the last ones


def half_unit(printed: float) -> float:
    """Half a unit of the last digit that a number was printed with; a whole number may be rounded to the unit."""
    exponent = Decimal(f"{printed:.{DIGITS}g}").as_tuple().exponent
    return 0.5 * 10.0 ** min(exponent, 0) if isinstance(exponent, int) else 0.0


def digits(printed: float) -> int:
    """Digits that a number was printed with, without the zeros around them; at most DIGITS."""
    return len(f"{printed:.{DIGITS}g}".partition("e")[0].lstrip("-").replace(".", "").strip("0"))


def looseness(*printed: float | None) -> float:
    """The relative error that printing leaves in a product or quotient of these."""
    return sum(half_unit(number) / abs(number) for number in printed if number)


def rel(one: float, other: float) -> float:
    """How far apart two numbers are, as a share of the larger; 0 of two zeros."""
    larger = max(abs(one), abs(other))
    return abs(one - other) / larger if larger else 0.0


def beyond(one: float, other: float, loose: float) -> float:
    """Their relative difference, less what printing explains."""
    return max(0.0, rel(one, other) - loose)


def whole_multiple(stated: float, computed: float, loose: float) -> str:
    """Words for a number that is a whole multiple or share of another, but for what printing explains; else nothing."""
    times = stated / computed if computed else 0.0
    if not 1 / MULTIPLES.stop < times < MULTIPLES.stop:
        return ""
    whole = round(max(times, 1 / times))
    expected = whole if times > 1 else 1 / whole
    if whole not in MULTIPLES or beyond(times, expected, loose) > 0:
        return ""
    share = f"{whole} times" if times > 1 else f"1/{whole} of"
    return f": exactly {share} what the totals give, as when one instance or run is stated as several"
