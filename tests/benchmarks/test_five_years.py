"""The benchmark of a lake of five years says what it needs before it writes one."""

from pathlib import Path

import pytest

from benchmarks.bars import NotMeasuredError
from benchmarks.five_years import measure


def test_without_a_browser_nothing_is_written_and_the_missing_package_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(NotMeasuredError, match="install Debian's package chromium"):
        measure()
