"""Bundles the meter into one file, reproducible byte for byte; a host needs only Python to run it."""

import zipfile
from pathlib import Path

FIRST_DAY_OF_ZIP = (1980, 1, 1, 0, 0, 0)  # the oldest date that zip can store
_START = b"from meter.__main__ import main\n\nraise SystemExit(main())\n"
_SHEBANG = b"#!/usr/bin/env python3\n"


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name, FIRST_DAY_OF_ZIP)
    entry.create_system = 3  # Unix, whatever system writes it
    entry.external_attr = 0o644 << 16
    archive.writestr(entry, content)  # stored, since compressors differ between builds of Python


def bundle(target: Path) -> None:
    """Write the package as an executable zip; run it by `python meter.pyz run plan.json out/`."""
    package = Path(__file__).parent
    with target.open("wb") as file:
        file.write(_SHEBANG)
        with zipfile.ZipFile(file, "w") as archive:
            _add(archive, "__main__.py", _START)
            for source in sorted(package.glob("*.py")):
                _add(archive, f"meter/{source.name}", source.read_bytes())
    target.chmod(0o755)
