"""The configuration that the columns of a claims table state."""

import re
from collections.abc import Mapping

from bench.audit.claim import ClaimedConfig, NotRead
from bench.catalog.names import count_of_gpus
from warehouse.importers.claims_table.numbers import BARE, Numbers
from warehouse.importers.parsing.fields import FALSE, INFINITE, NOTHING
from warehouse.importers.parsing.printed import (
    engine_of,
    printed_precision,
    read_quantity,
    version_in,
    whole,
    why_no_number,
)
from warehouse.importers.parsing.printed_units import unit_of

# With these metrics of a closed loop, `concurrency_or_batch` is a concurrency.
_SERVING = frozenset({"output_throughput_tok_per_s", "request_throughput_per_s", "per_user_tok_per_s"})
_WHOLE = {
    "gpu_count": "gpu_count",
    "tp": "tp_size",
    "pp": "pp_size",
    "dp": "dp_size",
    "ep": "ep_size",
    "max_model_len": "max_model_len",
    "num_prompts": "request_count",
    "concurrency": "concurrency",
    "batch": "batch",
}
_NUMBERS = {name: name for name in ("isl", "osl", "spec_tokens_per_step")} | {"request_rate": "request_rate_per_s"}
# Words anywhere in a row by which a token takes less than a whole step, or a prompt less than its prefill.
_SWITCHES = {
    "is_speculative": re.compile(
        r"\b(?:speculat\w*|spec[ _-]?dec\w*|eagle-?\d?\b|medusa\b|mtp\b|draft[ _-]?model|n-?gram\b|lookahead\b)",
        re.IGNORECASE,
    ),
    "prefix_caching": re.compile(
        r"\bprefix[ _-]?cach\w*|\bcached? (?:prompt|prefix)\w*|\bwarm cache|\bcache[ _-]hits?\b|\blmcache\b"
        r"|\bradix ?attention\b|\bmulti-?turn\b",
        re.IGNORECASE,
    ),
}
_OFF = FALSE | {"off", "none", "disabled", "w/o", "without", "-"}
_OFF_BEFORE = re.compile(r"(?:\bno|\bnot|\bnon|\bwithout|\bw/o|\bdisabled?|\boff)[\s_:=-]+(?:\w+\s+)?$", re.IGNORECASE)
_OFF_BEHIND = re.compile(r"(?:\s+\w+){0,2}?[\s_:=(-]+(?:is |was )?(?:off|disabled|false|none|no|0)\b", re.IGNORECASE)
_OBSERVED = {"observed_isl": "mean_input_tokens", "observed_osl": "mean_output_tokens"}
_OF_BATCH = frozenset({"e2el.mean", "e2el.", f"e2el.{BARE}"})
# GPUs that a table does not name; two such rows may be of different ones.
_UNNAMED = NOTHING | {"unknown", "undisclosed", "unspecified", "not disclosed", "various", "other", "tbd", "gpu"}
_MODES = ("", "offline", "serving")
# Notes that say what the load is: all prompts at once, or the cap of the engine in the place of a concurrency.
_OFFLINE = re.compile(r"\boffline\b|concurrency\b[^;]*\bmax[ _-]num[ _-]seqs", re.IGNORECASE)

Row = Mapping[str, str]


def asked_of(row: Row, numbers: Numbers, words: str = "") -> ClaimedConfig:
    """The configuration of these cells; a cell that is not read is noted in `numbers`.

    `words` are all that the rows say, for what they may say anywhere.
    """
    known: dict[str, object] = {field: _whole(row, name, numbers) for name, field in _WHOLE.items()}
    known |= {field: _number(row, name, numbers) for name, field in _NUMBERS.items()}
    if row["mode"].lower() not in _MODES:
        _leave(numbers, "mode", row["mode"], "it is neither offline nor serving")
    for column, field in _OBSERVED.items():
        if (mean := _number(row, column, numbers)) is not None:
            numbers.parts["said"][field] = mean
    known |= {name: _switch(row[name], said, words) for name, said in _SWITCHES.items()}
    known["gpu_count"] = known["gpu_count"] or count_of_gpus(row["gpu"])
    known["max_model_len"] = known["max_model_len"] or numbers.longest
    known |= {name: load for name, load in _load(row, numbers).items() if known[name] is None}
    return ClaimedConfig(
        **known,  # type: ignore[arg-type]  # each is of its field's type
        model=row["model"] or None,
        precision=printed_precision(row["precision"]),
        kv_precision=printed_precision(row["kv_precision"]),
        gpu=None if row["gpu"].lower() in _UNNAMED else row["gpu"],
        engine=engine_of(row["framework"]),
        engine_version=version_in(row["framework_version"]) or version_in(row["framework"]),
        image=row["image"] or None,
        gpu_memory_utilization=_share(row, numbers),
        usd_per_hour=numbers.parts["asked"].get("usd_per_hour"),
        weights_gib=numbers.parts["asked"].get("weights_gib"),
    )


def _switch(cell: str, said: re.Pattern[str], words: str) -> bool | None:
    """Whether it is on by its own column, else by the words of the row; None if neither says so."""
    if cell:
        return cell.lower() not in _OFF
    found = list(said.finditer(words))
    denied = [
        bool(_OFF_BEFORE.search(words[: each.start()]) or _OFF_BEHIND.match(words[each.end() :])) for each in found
    ]
    return None if not found else not all(denied)


def _load(row: Row, numbers: Numbers) -> dict[str, int | None]:
    """The meaning of `concurrency_or_batch`: neither in an offline run, as an engine's cap is not a closed loop."""
    load = _whole(row, "concurrency_or_batch", numbers)
    bounded = {bound.name for bound in numbers.bounds}
    latency = {*numbers.parts["latency"], *(name for name in bounded if "." in name)}
    is_batch = bool(latency & _OF_BATCH) and not any("ttft" in name for name in latency)
    is_serving = bool(_SERVING & {*numbers.parts["said"], *bounded}) or bool(latency)
    if row["mode"].lower() == "offline" or (not row["mode"] and _OFFLINE.search(row["notes"])):
        return {}
    return {"batch": load if is_batch else None, "concurrency": load if is_serving and not is_batch else None}


def _whole(row: Row, name: str, numbers: Numbers) -> int | None:
    found = whole(row[name])
    if row[name] and found is None:
        _leave(numbers, name, row[name], "it is not a whole number")
    return found


def _number(row: Row, name: str, numbers: Numbers) -> float | None:
    quantity = read_quantity(row[name])
    number = quantity.number if quantity else None
    if row[name] and number is None and not (name == "request_rate" and row[name].lower() in INFINITE):
        _leave(numbers, name, row[name], why_no_number(row[name]))
    return number


def _share(row: Row, numbers: Numbers) -> float | None:
    quantity = read_quantity(row["gpu_memory_utilization"])
    unit = unit_of(quantity.unit) if quantity and quantity.unit else None
    share = quantity.number * (unit.factor if unit else 1.0) if quantity and quantity.number is not None else None
    if row["gpu_memory_utilization"] and not (share and 0 < share <= 1):
        _leave(
            numbers, "gpu_memory_utilization", row["gpu_memory_utilization"], "it is not a share such as 0.9 or 90 %"
        )
        return None
    return share


def _leave(numbers: Numbers, column: str, value: str, why: str) -> None:
    numbers.not_read.append(NotRead("value", column, value, why))
