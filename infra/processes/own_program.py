"""Children that run our own Python: they import nothing from the folder that they were started in.

Python puts the current folder first where `-m` or `-c` runs a program: a package of the same name there would run in
place of ours.
"""

import os
import sys
from collections.abc import Collection
from pathlib import Path

from infra.processes.environment import ChildEnvironment

FOLDER = Path("/")  # that they run in: not a user's folder, nor on a disk that may be unmounted
_FILES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
_IMPORTS = "PYTHONPATH"


def own_program(module: str, *arguments: str) -> tuple[str, ...]:
    """The command line that runs one of our modules with this Python; `-P` leaves out the current folder."""
    return (sys.executable, "-P", "-m", module, *arguments)


def from_any_folder(environment: ChildEnvironment, paths: Collection[str] = ()) -> ChildEnvironment:
    """The same environment for a child in another folder: the paths in it, and in variables of these names, are whole.

    An empty entry of PYTHONPATH means the current folder, so it is left out.
    """
    named = [name for name in (*_FILES, *paths) if environment.get(name)]
    whole = {name: str(Path(environment[name]).absolute()) for name in named}
    if _IMPORTS in environment:
        entries = filter(None, environment[_IMPORTS].split(os.pathsep))
        whole[_IMPORTS] = os.pathsep.join(str(Path(entry).absolute()) for entry in entries)
    return ChildEnvironment({**environment, **whole})
