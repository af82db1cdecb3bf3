"""Numbers in sentences: `1 value`, `3 values`, and no exponent for a size that people say in digits."""

import re
from decimal import Decimal

_EXPONENT = re.compile(r"(?<![\w.])-?\d(?:\.\d+)?e[+-]\d\d(?!\w)")
_DIGITS_MAX = 12  # before or after the point: beyond that an exponent is what people read


class PlainNumber(float):
    """A number for a sentence's template: `{value:#value|values}` is `1 value` or `3 values`."""

    __slots__ = ()

    def __format__(self, spec: str) -> str:
        """As any number, or with the word that goes with it."""
        return counted(self, *spec[1:].split("|")) if spec.startswith("#") else super().__format__(spec)


def counted(count: float, one: str, many: str | None = None) -> str:
    """`1 request`, `2 requests`; `many` where more than one is not `one` with an s."""
    whole = f"{count:.0f}"  # an impossible count, an infinite one, is still printed
    return f"{whole} {one if whole == '1' else many or one + 's'}"


def written_out(text: str) -> str:
    """The text with numbers like `1e+03` in digits."""
    return _EXPONENT.sub(lambda found: _digits(found[0]), text)


def shown(template: str) -> str:
    """A sentence's template for a page: `{value} values could not be read`."""
    return re.sub(r"\{value:#[^|}]*\|([^}]*)\}", r"{value} \1", template)


def _digits(number: str) -> str:
    exponent = int(number.partition("e")[2])
    return f"{Decimal(number):f}" if abs(exponent) <= _DIGITS_MAX else number
