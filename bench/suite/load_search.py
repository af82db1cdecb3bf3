"""The first probe of a `[[sweeps]]` or a `[[searches]]` table; the others follow from what it shows."""

import math
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from bench.suite.search import Goodput, Saturation, Search
from bench.suite.setups import InvalidTableError, PlacedError
from bench.suite.slo import Slo
from bench.suite.source import Place
from bench.suite.workload import Workload
from bench.suite.workloads.embedding import EMBED

SEARCH_TABLES = ("sweeps", "searches")


class SweepTable(Saturation, Workload):
    """The keys of a `[[sweeps]]` table, for suggestions."""

    name: str


class SearchTable(Goodput, Workload):
    """The keys of a `[[searches]]` table, for suggestions."""

    name: str


# Keys of a probe that its search sets.
_SET = {
    "sweeps": {
        "kind": "write [[searches]] for a goodput search",
        "concurrency": "give levels, or concurrency_min and concurrency_max",
        "request_count": "give requests_per_slot",
        "warmup_count": "give warmups_per_slot",
        "request_rate_per_s": "a sweep is a closed loop; [[searches]] search by request rate",
        "arrivals": "a sweep is a closed loop; [[searches]] search by request rate",
    },
    "searches": {
        "kind": "write [[sweeps]] for a saturation sweep",
        "concurrency": "a search is an open loop; [[sweeps]] sweep the concurrency",
        "request_rate_per_s": "give request_rate_per_s_min and request_rate_per_s_max",
    },
}
_OPEN = ("poisson", "constant", "gamma")


def first_probe(key: str, table: Mapping[str, Any], place: Place, slo: Slo | None) -> tuple[dict[str, Any], Search]:
    """The table of the first probe's scenario, and the search that it begins; `slo` is the suite's.

    Raises InvalidTableError or PlacedError.
    """
    for name, instead in _SET[key].items():
        if name in table:
            raise PlacedError((*place, name), f"{'.'.join(map(str, place))}.{name}: unknown key; {instead}")
    kind: type[Saturation | Goodput] = Saturation if key == "sweeps" else Goodput
    own = {name: value for name, value in table.items() if name in kind.model_fields}
    try:
        search = kind.model_validate(own)
    except ValidationError as error:
        raise InvalidTableError(place, error) from error
    _require_plain(table, place)
    point = {name: value for name, value in table.items() if name not in own}
    embeds = table.get("task") == EMBED
    if isinstance(search, Saturation):
        if embeds:
            message = "a sweep looks at output tokens, and embeddings have none: write a [[searches]] table"
            raise PlacedError((*place, "task"), message)
        return {"repeats": 1} | point | closed_load(search, search.first), search
    _require_enough(search.slo or slo, table, place, embeds=embeds)
    return {"repeats": 1, "arrivals": "poisson"} | point | {"request_rate_per_s": search.request_rate_per_s_min}, search


def closed_load(search: Saturation, concurrency: int) -> dict[str, int]:
    """What a workload of a sweep has at a level."""
    return {
        "concurrency": concurrency,
        "request_count": concurrency * search.requests_per_slot,
        "warmup_count": concurrency * search.warmups_per_slot,
    }


def _require_plain(table: Mapping[str, Any], place: Place) -> None:
    prompts = table.get("prompts")
    kind = prompts.get("kind") if isinstance(prompts, dict) else None
    if kind in ("sharegpt", "multi-turn"):
        raise PlacedError(
            (*place, "prompts"), f"a search draws its prompts again for each probe: {kind} is not possible"
        )
    if table.get("arrivals", "poisson") not in _OPEN:
        raise PlacedError((*place, "arrivals"), f"a search by request rate needs one of {', '.join(_OPEN)} arrivals")


def _require_enough(slo: Slo | None, table: Mapping[str, Any], place: Place, *, embeds: bool) -> None:
    """A share of 99 % says nothing of fewer than a hundred requests: one of them outside would be too many."""
    if slo is None or (embeds and slo.of_embeddings is None):
        what, bound = ("SLO that embeddings can keep", "e2el_ms_max") if embeds else ("SLO", "ttft_ms_max")
        why = f"has no {what}: give it slo = {{{bound} = ...}}, or the suite an [slo] table"
        raise PlacedError(place, f"search {table.get('name')!r} {why}")
    count = table.get("request_count")
    least = math.ceil(round(1 / (1 - slo.share_min), 6))
    if isinstance(count, int) and count < least:
        raise PlacedError(
            (*place, "request_count"),
            f"{count} requests cannot show that a share of {slo.share_min:.4g} keeps the SLO: "
            f"give at least {least}, or a lower slo.share_min",
        )
