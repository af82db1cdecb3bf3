"""Whether an answer has the form that the plan demands of it."""

import json
import re
from collections.abc import Mapping
from typing import Any

from meter.json_schema import fits
from meter.sse import Answer

Demand = Mapping[str, Any]  # of the plan: `schema`, `pattern`, or `schema` and `tool`


def is_valid(answer: Answer, demand: Demand) -> bool:
    """Whether the whole answer fits; one that was cut does not."""
    if "pattern" in demand:
        return re.fullmatch(demand["pattern"], answer.text.strip()) is not None
    if "tool" in demand and answer.tool_name != demand["tool"]:
        return False
    try:
        value = json.loads(answer.tool_arguments if "tool" in demand else answer.text)
    except (ValueError, RecursionError):
        return False
    return fits(value, demand["schema"])
