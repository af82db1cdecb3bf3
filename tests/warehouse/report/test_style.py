"""The colours of a page, text and marks of charts alike, have contrast in light and in dark."""

import re

import pytest

from warehouse.report.markup import STYLE

COLOURS = dict(re.findall(r"--(\w+):light-dark\(([^)]*)\)", STYLE))
NAMED = ("ink", "soft", "good", "doubt", "bad", "mark")
TEXT = 4.5  # least contrast of text by WCAG 2.2, criterion 1.4.3; marks of a chart need 3


def _luminance(colour: str) -> float:
    digits = colour.removeprefix("#")
    pairs = re.findall("..", digits) if len(digits) == 6 else [2 * digit for digit in digits]
    parts = [int(pair, 16) / 255 for pair in pairs]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_and_marks_have_contrast(scheme: str) -> None:
    of = {name: _luminance(pair.split(",")[scheme == "dark"]) for name, pair in COLOURS.items()}
    contrast = {name: (max(one, of["paper"]) + 0.05) / (min(one, of["paper"]) + 0.05) for name, one in of.items()}

    assert [name for name in NAMED if contrast[name] < TEXT] == []
