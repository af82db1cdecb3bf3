"""A row of `measurements` as exporters read it; None for unknown values."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bench.engines.config import parallel_sizes, parse_flags
from warehouse.schema.metric_columns import STATISTICS
from warehouse.schema.row import Row


@dataclass(frozen=True)
class Measurement:
    """One row of `measurements`."""

    row: Row

    def __getitem__(self, column: str) -> Any:
        """The value of a column; None if it is NULL or missing in an older lake."""
        return self.row.get(column)

    @property
    def flags(self) -> dict[str, str]:
        """The engine's extra arguments by their long name; "" for one without a value."""
        return parse_flags(self["engine_flags"] or ())

    @property
    def parallel(self) -> dict[str, int]:
        """Tensor, pipeline and data parallel sizes as the engine ran; of an older lake, as the suite requests."""
        asked = parallel_sizes(self.flags)
        return {kind: self[f"{kind}_size"] or getattr(asked, f"{kind}_size") for kind in ("tp", "pp", "dp")}

    @property
    def gpu_count(self) -> int:
        """Number of GPUs that the server used; 0 without a GPU."""
        if not self["gpus"]:
            return 0
        return math.prod(self.parallel.values()) if self["gpu_count"] is None else int(self["gpu_count"])

    @property
    def gpu(self) -> str | None:
        """The GPU model; None without a GPU or with several models."""
        names = set(self["gpus"] or ())
        return names.pop() if len(names) == 1 else None

    @property
    def engine_version(self) -> str | None:
        """The version that the server reported, else the requested one."""
        found, asked = self["engine_version_found"], self["engine_version_asked"]
        return str(found or asked) if found or asked else None

    @property
    def framework(self) -> str | None:
        """Engine and version as one text."""
        words = [word for word in (self["engine"], self.engine_version) if word]
        return " ".join(words) or None

    @property
    def input_tok_per_s(self) -> float | None:
        """Input tokens of completed requests per second."""
        tokens, seconds = self["total_input_tokens"], self["duration_s"]
        return tokens / seconds if tokens is not None and seconds else None

    @property
    def total_tok_per_s(self) -> float | None:
        """Input and output tokens per second."""
        given, made = self.input_tok_per_s, self["output_throughput_tok_per_s"]
        return given + made if given is not None and made is not None else None

    def latencies_ms(self, metric: str) -> dict[str, float]:
        """The known statistics of one metric by name, in milliseconds."""
        found = {statistic: self[f"{metric}_{statistic}_ms"] for statistic in STATISTICS}
        return {statistic: value for statistic, value in found.items() if value is not None}


def known(values: Mapping[str, Any]) -> dict[str, Any]:
    """These without what is not known: a key that is missing is not a number, and neither is 0."""
    return {name: value for name, value in values.items() if value is not None and value not in ({}, [])}
