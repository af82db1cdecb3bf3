"""References of a suite that may move, a branch or a tag, and the lock that pins each to a commit or a digest.

A series must not change by itself. So `nightbench pin` resolves the references once and writes `SUITE.lock.toml`. A
night stores the pinned suite, and its scenario ids depend on the commits and digests.
"""

import json
import re
import tomllib
from collections.abc import Sequence
from datetime import date

from pydantic import Field, ValidationError

from bench.errors import SuiteError
from bench.frozen import Frozen
from bench.suite.control import Control
from bench.suite.engine import Engine
from bench.suite.model import Model
from bench.suite.source import SuiteSource
from bench.suite.suite import ScenarioEntry, Suite

MODEL, IMAGE = "model.source", "engine.image"
CONTROL = "control."  # before the keys of the suite's control
_MODEL, _IMAGE = re.compile(r"hf:[\w.-]+/[\w.-]+@[0-9a-f]{40}"), re.compile(r"[a-z0-9][\w./:-]*@sha256:[0-9a-f]{64}")


class Pin(Frozen):
    """One reference of a suite, and what it named when it was pinned."""

    key: str
    reference: str
    pinned: str
    version: str | None = None  # of an image, as its labels say
    commit: str | None = None  # that an image was built from, as its labels say


class PinnedPrice(Frozen):
    """The price of a kind of machine on the day of pinning."""

    cloud: str
    kind: str
    usd_per_hour: float = Field(ge=0)
    as_of: date


class Lock(Frozen):
    """A lock file: the pins of one suite."""

    suite: str
    pins: tuple[Pin, ...] = Field(default=(), strict=False)
    prices: tuple[PinnedPrice, ...] = Field(default=(), strict=False)


def moving_references(suite: Suite) -> dict[str, str]:
    """The references that may move, by key; the image of a tracked engine is not one, since each night resolves it."""
    found = _models(suite) | _images(suite, is_tracked=False)
    if suite.control is not None:
        of_control = {MODEL: suite.control.model.source, IMAGE: suite.control.engine.image or ""}
        found |= {CONTROL + key: text for key, text in of_control.items() if text and _may_move(key, text)}
    return {key: text for key, text in found.items() if not _is_fixed(key, text)}


def tracked_references(suite: Suite) -> dict[str, str]:
    """The tags that each night resolves, by key."""
    return _images(suite, is_tracked=True)


def _is_fixed(key: str, text: str) -> bool:
    """Whether this is what the reference of a key looks like once it is pinned."""
    return any(key.endswith(end) and form.fullmatch(text) for end, form in ((MODEL, _MODEL), (IMAGE, _IMAGE)))


def _may_move(key: str, text: str) -> bool:
    """Whether it is an image or a model of the hub."""
    return not key.endswith(MODEL) or text.startswith("hf:")


def _models(suite: Suite) -> dict[str, str]:
    """Each model of the hub once, by the key of the first scenario that asks for it."""
    own = {f"scenarios.{entry.name}.{MODEL}": entry.model for entry in suite.scenarios if entry.model is not None}
    found: dict[str, str] = {}
    for key, model in ({MODEL: suite.model} | own).items():
        if _may_move(key, model.source) and model.source not in found.values():
            found[key] = model.source
    return found


def _images(suite: Suite, *, is_tracked: bool) -> dict[str, str]:
    """Each image of the suite's engines once, by the key of the first engine that has it."""
    own = {f"scenarios.{entry.name}.{IMAGE}": entry.engine for entry in suite.scenarios if entry.engine is not None}
    found: dict[str, str] = {}
    for key, engine in ({IMAGE: suite.engine} | own).items():
        reference = _image_of(engine)
        if reference is not None and bool(engine.track) == is_tracked and reference not in found.values():
            found[key] = reference
    return found


def _image_of(engine: Engine) -> str | None:
    """The image that an engine asks for, with the tag that it tracks; None without a container."""
    return f"{engine.image}:{engine.track}" if engine.track else engine.image


def apply_lock(suite: Suite, lock: Lock, where: str, suite_file: str) -> Suite:
    """The suite with each pinned reference in place of the one that may move; others stay as they are.

    Raises SuiteError where the lock is of another suite, or pins another reference than the suite has.
    """
    if lock.suite != suite.name:
        raise SuiteError(
            f"{where} is the lock of the suite {lock.suite!r}, but {suite_file} is {suite.name!r}: "
            f"run `nightbench pin {suite_file}`"
        )
    moving = moving_references(suite)
    for pin in lock.pins:
        if pin.key not in moving:
            continue
        if pin.reference != moving[pin.key]:
            raise SuiteError(
                f"{where} pins {pin.key} = {pin.reference!r}, but {suite_file} has {moving[pin.key]!r}: "
                f"run `nightbench pin {suite_file}`"
            )
        suite = with_pin(suite, pin)
    return suite


def with_pin(suite: Suite, pin: Pin) -> Suite:
    """The suite with this one reference pinned, wherever it stands."""
    if suite.control and pin.key.startswith(CONTROL):
        return suite.model_copy(update={"control": suite.control.model_copy(update=_pinned(suite.control, pin))})
    entries = tuple(entry.model_copy(update=_pinned(entry, pin)) for entry in suite.scenarios)
    return suite.model_copy(update=_pinned(suite, pin) | {"scenarios": entries})


def _pinned(served: Suite | ScenarioEntry | Control, pin: Pin) -> dict[str, Model | Engine]:
    if pin.key.endswith(MODEL):
        is_its = served.model is not None and served.model.source == pin.reference
        return {"model": served.model.model_copy(update={"source": pin.pinned})} if served.model and is_its else {}
    return {"engine": _with_image(served.engine, pin)} if served.engine else {}


def _with_image(engine: Engine, pin: Pin) -> Engine:
    """An engine of this image with its image pinned, and what the image's labels say of its build."""
    if _image_of(engine) != pin.reference:
        return engine
    return engine.model_copy(update={"image": pin.pinned, "image_version": pin.version, "image_commit": pin.commit})


def require_pins(suite: Suite, source: SuiteSource) -> None:
    """Raise SuiteError with line and next step where a reference may move."""
    for key, reference in moving_references(suite).items():
        raise SuiteError(
            f"{source.at(tuple(key.split('.')))}: {key} = {reference!r} may move, and no lock pins it: "
            f"run `nightbench pin {source.where}`"
        )


def parse_lock(text: str, where: str, suite_file: str) -> Lock:
    """Parse a lock file's text; SuiteError naming the file, the key and the next step if it is not valid."""
    again = f"run `nightbench pin {suite_file}`, which writes it again"
    try:
        lock = Lock.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise SuiteError(f"{where}: not TOML: {error}; {again}") from error
    except ValidationError as error:
        first = error.errors()[0]
        raise SuiteError(f"{where}: {'.'.join(map(str, first['loc']))}: {first['msg']}; {again}") from error
    for pin in lock.pins:
        if not _is_fixed(pin.key, pin.pinned):
            raise SuiteError(f"{where}: the pin of {pin.key} is {pin.pinned!r}, which may move; {again}")
    return lock


def lock_text(lock: Lock, suite_file: str) -> str:
    """The lock as TOML: sorted, so that two of them can be compared line by line."""
    pins = [pin.model_dump(exclude_none=True) for pin in sorted(lock.pins, key=lambda pin: pin.key)]
    prices = [price.model_dump() for price in sorted(lock.prices, key=lambda price: (price.cloud, price.kind))]
    head = f"# Written by `nightbench pin {suite_file}`. Run it again to pin what the references name then.\n"
    tables = [*_tables("pins", pins), *_tables("prices", prices)]
    return "\n".join((f"{head}suite = {json.dumps(lock.suite)}\n", *tables))


def _tables(name: str, rows: Sequence[dict[str, object]]) -> list[str]:
    # TOML writes a date bare; its other values are written as in JSON.
    def shown(value: object) -> str:
        return value.isoformat() if isinstance(value, date) else json.dumps(value)

    return [f"[[{name}]]\n" + "".join(f"{key} = {shown(value)}\n" for key, value in row.items()) for row in rows]
