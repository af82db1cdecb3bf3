"""Import great-expectations without what only few of its expectations use."""

import sys

import pytest

from warehouse.judging.validation import import_later


def test_a_module_is_imported_when_it_is_first_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)

    import_later("colorsys")
    import colorsys  # noqa: PLC0415

    later = sys.modules["colorsys"]
    assert "ONE_THIRD" not in vars(later)
    assert colorsys.rgb_to_hsv(1, 0, 0) == (0, 1, 1)
    assert sys.modules["colorsys"] is not later
