"""Vega, Vega-Lite and Vega-Embed as one classic script, for a page that loads nothing from outside.

`python -m warehouse.report.vega` prints it.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import vl_convert

VEGA = f"vega-{vl_convert.get_vega_version()}.js"


def vega_script() -> str:
    """The script; to put it together takes a second, in which no other thread of Python runs."""
    named = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed; window.vega = vega;")
    return f"(()=>{{{named}}})();\n"


@contextmanager
def vega_script_meanwhile() -> Iterator[Callable[[], str]]:
    """Let another process put the script together during the block; call what this yields for the script.

    The call raises CalledProcessError where that process fails.
    """
    command = (sys.executable, "-P", "-m", __name__)  # whatever is in the current folder
    with ThreadPoolExecutor(1, "vega") as waiting:
        made = waiting.submit(subprocess.run, command, check=True, stdout=subprocess.PIPE, encoding="utf-8")
        yield lambda: str(made.result().stdout)


if __name__ == "__main__":
    sys.stdout.write(vega_script())
