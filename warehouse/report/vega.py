"""Vega, Vega-Lite and Vega-Embed as one classic script, for a page that loads nothing from outside."""

import vl_convert

VEGA = f"vega-{vl_convert.get_vega_version()}.js"


def vega_script() -> str:
    """The script; putting it together takes a second in which no other thread of Python runs."""
    named = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed; window.vega = vega;")
    return f"(()=>{{{named}}})();\n"
