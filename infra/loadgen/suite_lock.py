"""Resolves the references of a suite that may move, and reads and writes the lock beside the suite's file."""

import tempfile
from pathlib import Path

from bench.errors import SuiteError, UsageError
from bench.suite.pins import (
    MODEL,
    Lock,
    Pin,
    apply_lock,
    lock_text,
    moving_references,
    parse_lock,
    tracked_references,
    with_pin,
)
from bench.suite.suite import Suite
from infra.engines.registry import resolve_tag
from infra.models.hub_listing import read_listing
from infra.models.models import FROM_HUB
from infra.models.transfer_process import Hub
from nights.durable import write_text


def lock_file(suite_file: Path) -> Path:
    """The path of a suite's lock: `night.lock.toml` beside `night.toml`."""
    return suite_file.with_suffix(".lock.toml")


def read_lock(suite_file: Path) -> Lock | None:
    """The lock of a suite; None if it has none, SuiteError if it is not valid."""
    path = lock_file(suite_file)
    try:
        return parse_lock(path.read_text("utf-8"), str(path), str(suite_file))
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the lock {path} cannot be read: {error}") from error


def write_lock(lock: Lock, suite_file: Path) -> Path:
    """Write a lock beside its suite, whole or not at all."""
    path = lock_file(suite_file)
    try:
        write_text(path, lock_text(lock, str(suite_file)))
    except OSError as error:
        raise UsageError(f"the lock {path} cannot be written: {error}") from error
    return path


def with_lock(suite: Suite, suite_file: Path) -> Suite:
    """The suite as its lock pins it; unchanged without a lock."""
    lock = read_lock(suite_file)
    return suite if lock is None else apply_lock(suite, lock, str(lock_file(suite_file)), str(suite_file))


def resolve_references(suite: Suite, hub: Hub) -> tuple[Pin, ...]:
    """What each reference that may move names now, by the model hub and the image's registry.

    Raises ModelError or EngineBuildError, with the reason, if one of them does not resolve it.
    """
    return tuple(
        _resolve_model(key, reference, hub) if key.endswith(MODEL) else _resolve_image(key, reference)
        for key, reference in moving_references(suite).items()
    )


def resolve_tracked(suite: Suite) -> Suite:
    """The suite with what each tag that one of its engines tracks names now."""
    for key, reference in tracked_references(suite).items():
        suite = with_pin(suite, _resolve_image(key, reference))
    return suite


def _resolve_model(key: str, source: str, hub: Hub) -> Pin:
    named = FROM_HUB.fullmatch(source)
    if named is None:
        raise SuiteError(f"{key} = {source!r} must have the form hf:org/name@branch")
    with tempfile.TemporaryDirectory() as aside:
        commit = read_listing(named["repo"], named["revision"] or "main", Path(aside), hub).sha
    return Pin(key=key, reference=source, pinned=f"hf:{named['repo']}@{commit}")


def _resolve_image(key: str, image: str) -> Pin:
    found = resolve_tag(image)
    return Pin(key=key, reference=image, pinned=found.name, version=found.version, commit=found.commit)
