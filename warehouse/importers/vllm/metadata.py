"""What `--metadata KEY=VALUE` adds to a result: values as text, by the keys of a context file."""

from collections.abc import Callable
from functools import cache
from typing import Any, get_args, get_type_hints

from bench.audit.claim import ClaimedConfig
from bench.audit.context_keys import field_of
from warehouse.importers.parsing.fields import Fields

_READERS: dict[type, Callable[[Fields, str], Any]] = {
    bool: Fields.flag,
    int: Fields.integer,
    float: Fields.number,
    str: Fields.text,
}


def read_metadata(fields: Fields) -> ClaimedConfig:
    """The configuration in the keys that `--metadata` added; a value of another type is ignored with a remark."""
    found: dict[str, Any] = {}
    for name in fields.names():
        key = field_of(name, None)
        if key is None or key[0] in found:
            continue
        read = _reader_of(key[0])
        field, value = field_of(name, None if read is None else read(fields, name)) or key
        if value is not None:
            found[field] = value
    return ClaimedConfig(**found)


@cache
def _reader_of(field: str) -> Callable[[Fields, str], Any] | None:
    """How a value of this field is read; None of one that has a few words only."""
    kinds = get_args(get_type_hints(ClaimedConfig)[field])
    return next((read for kind, read in _READERS.items() if kind in kinds), None)
