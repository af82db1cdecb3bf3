"""Locks: what pins a suite's references, and what each of their errors says."""

import tomllib
from datetime import date
from pathlib import Path

import pytest

from bench.errors import SuiteError
from bench.suite.control import Control
from bench.suite.parse import parse_suite
from bench.suite.pins import (
    IMAGE,
    MODEL,
    Lock,
    Pin,
    PinnedPrice,
    apply_lock,
    lock_text,
    moving_references,
    parse_lock,
    require_pins,
)
from bench.suite.source import SuiteSource
from bench.suite.suite import Suite

FILE = Path(__file__).parents[3] / "suites" / "llama-3.3-70b-mi300x.toml"
TEXT = FILE.read_text()
SUITE = parse_suite(TEXT, "llama.toml")
SOURCE, IMAGE_NAME = SUITE.model.source, SUITE.engine.image or ""
COMMIT, DIGEST = "0123456789" * 4, f"sha256:{'ab' * 32}"
REPOSITORY = IMAGE_NAME.rpartition(":")[0]
PINS = (
    Pin(key=MODEL, reference=SOURCE, pinned=f"hf:meta-llama/Llama-3.3-70B-Instruct@{COMMIT}"),
    Pin(key=IMAGE, reference=IMAGE_NAME, pinned=f"{REPOSITORY}@{DIGEST}", version="0.32.0", commit="c" * 40),
)
PRICE = PinnedPrice(cloud="digitalocean", kind="gpu-mi300x1-192gb", usd_per_hour=2.59, as_of=date(2026, 10, 1))
LOCK = Lock(suite=SUITE.name, pins=PINS, prices=(PRICE,))


def _line(start: str) -> int:
    return next(number for number, line in enumerate(TEXT.splitlines(), 1) if line.startswith(start))


def _locked(lock: Lock, suite: Suite = SUITE) -> Suite:
    return apply_lock(suite, lock, "llama.lock.toml", "llama.toml")


def test_a_reference_that_may_move_is_named_with_its_line_and_what_to_do() -> None:
    with pytest.raises(SuiteError) as caught:
        require_pins(SUITE, SuiteSource.of(TEXT, "llama.toml"))

    assert str(caught.value).startswith(f"llama.toml:{_line('source')}: model.source = {SOURCE!r} may move")
    assert str(caught.value).endswith("run `nightbench pin llama.toml`")


def test_a_locked_suite_has_nothing_that_moves_and_says_what_was_built() -> None:
    locked = _locked(LOCK)

    require_pins(locked, SuiteSource.of(TEXT, "llama.toml"))
    assert locked.model.source == f"hf:meta-llama/Llama-3.3-70B-Instruct@{COMMIT}"
    assert locked.engine.image == f"{REPOSITORY}@{DIGEST}"
    assert (locked.engine.image_version, locked.engine.image_commit) == ("0.32.0", "c" * 40)


def test_what_is_pinned_moves_the_ids_and_what_is_said_of_it_does_not() -> None:
    other_commit = Lock(suite=SUITE.name, pins=(PINS[0].model_copy(update={"pinned": f"hf:a/b@{'1' * 40}"}), PINS[1]))
    unlabelled = Lock(suite=SUITE.name, pins=(PINS[0], PINS[1].model_copy(update={"version": None, "commit": None})))
    written_out = TEXT.replace(SOURCE, PINS[0].pinned).replace(IMAGE_NAME, PINS[1].pinned)

    one, other, alike, plain = (
        suite.expand()[0]
        for suite in (_locked(LOCK), _locked(other_commit), _locked(unlabelled), parse_suite(written_out, "s"))
    )

    assert one.scenario_id != other.scenario_id
    assert one.scenario_id == alike.scenario_id == plain.scenario_id
    assert one.server_id == alike.server_id == plain.server_id


def test_a_lock_is_read_back_as_it_was_written_and_the_order_of_its_pins_does_not_matter() -> None:
    text = lock_text(LOCK, "llama.toml")

    assert parse_lock(text, "llama.lock.toml", "llama.toml").model_dump() == tomllib.loads(text) | {
        "pins": tuple(pin.model_dump() for pin in reversed(PINS)),
        "prices": (PRICE.model_dump(),),
    }
    assert lock_text(Lock(suite=SUITE.name, pins=PINS[::-1], prices=(PRICE,)), "llama.toml") == text
    assert "as_of = 2026-10-01\n" in text


@pytest.mark.parametrize(
    ("lock", "why"),
    [
        (Lock(suite="other", pins=PINS), "llama.lock.toml is the lock of the suite 'other', but llama.toml is"),
        (
            Lock(suite=SUITE.name, pins=(PINS[0].model_copy(update={"reference": "hf:a/b@main"}),)),
            f"llama.lock.toml pins model.source = 'hf:a/b@main', but llama.toml has {SOURCE!r}",
        ),
    ],
)
def test_the_lock_of_another_suite_is_refused(lock: Lock, why: str) -> None:
    with pytest.raises(SuiteError) as caught:
        _locked(lock)

    assert why in str(caught.value)
    assert str(caught.value).endswith("run `nightbench pin llama.toml`")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("suite = ", "llama.lock.toml: not TOML"),
        ("pins = []", "llama.lock.toml: suite: Field required"),
        ('suite = "s"\nmore = 1', "llama.lock.toml: more: Extra inputs"),
        (lock_text(LOCK, "s").replace(DIGEST, "v1"), "the pin of engine.image is"),
        (lock_text(LOCK, "s").replace(COMMIT, "main"), "the pin of model.source is"),
        (lock_text(LOCK, "s").replace('key = "model.source"', 'key = "model.name"'), "the pin of model.name is"),
    ],
)
def test_a_lock_that_is_not_valid_names_its_file_and_the_next_step(text: str, why: str) -> None:
    with pytest.raises(SuiteError) as caught:
        parse_lock(text, "llama.lock.toml", "llama.toml")

    assert why in str(caught.value)
    assert str(caught.value).endswith("run `nightbench pin llama.toml`, which writes it again")


def test_a_suite_without_moving_references_is_left_as_it_is() -> None:
    local = FILE.with_name("local.toml")
    suite = parse_suite(local.read_text(), local.name)

    assert moving_references(suite) == {}
    assert _locked(Lock(suite="local"), suite) == suite


TRACKED = TEXT.replace(f'"{IMAGE_NAME}"', f'"{REPOSITORY}"\ntrack = "nightly"')


def test_an_engine_that_tracks_a_tag_is_in_no_lock() -> None:
    assert set(moving_references(parse_suite(TRACKED, "s"))) == {MODEL}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (TRACKED.replace(REPOSITORY, IMAGE_NAME), "track needs an image without a tag"),
        (TRACKED.replace(REPOSITORY, f"{REPOSITORY}@{DIGEST}"), "engine.image has a digest, so there is nothing to"),
        (TEXT.replace('name = "vllm"', 'image_commit = "c"'), "engine.image_commit is set when a tag is resolved"),
        (TEXT.replace('install = "container"', ""), "a container needs an image"),
    ],
)
def test_what_a_suite_may_not_say_of_its_image(text: str, why: str) -> None:
    with pytest.raises(SuiteError, match=why):
        parse_suite(text, "s")


CONTROL = f"""
[control.model]
name = "small"
source = "hf:org/small@main"
[control.engine]
version = "0.31.0"
install = "container"
image = "{REPOSITORY}:v0.31.0"
max_model_len = 4096
[control.workload]
isl = 128
osl = 64
concurrency = 1
request_count = 24
"""
CONTROLLED = parse_suite(TEXT + CONTROL, "s")


def test_the_references_of_a_control_are_pinned_beside_those_of_its_suite() -> None:
    moving = moving_references(CONTROLLED)
    pinned = {"model": f"hf:org/small@{COMMIT}", "image": f"{REPOSITORY}@sha256:{'cd' * 32}"}
    pins = [
        Pin(key=key, reference=moving[key], pinned=pinned["model" if key.endswith(MODEL) else "image"])
        for key in ("control.model.source", "control.engine.image")
    ]

    locked = _locked(Lock(suite=SUITE.name, pins=(*PINS, *pins)), CONTROLLED)

    assert set(moving) == {MODEL, IMAGE, "control.model.source", "control.engine.image"}
    assert moving_references(locked) == {}
    assert locked.control is not None
    assert (locked.control.model.source, locked.control.engine.image) == tuple(pinned.values())
    assert (locked.model.source, locked.engine.image) == tuple(pin.pinned for pin in PINS)
    with pytest.raises(SuiteError, match=r"s:\d+: control.model.source = 'hf:org/small@main' may move"):
        require_pins(_locked(LOCK, CONTROLLED), SuiteSource.of(TEXT + CONTROL, "s"))


def test_a_control_is_no_scenario_of_its_suite_even_where_it_asks_for_the_same() -> None:
    scenario = SUITE.expand()[0]
    same = Control(model=SUITE.model, engine=SUITE.engine, workload=scenario.workload)

    control = SUITE.model_copy(update={"control": same}).control_scenario()

    assert control is not None
    assert control.model_copy(update={"is_control": False}).scenario_id == scenario.scenario_id
    assert control.scenario_id != scenario.scenario_id
    assert control.server_id != scenario.server_id
    assert SUITE.control_scenario() is None


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ((':v0.31.0"', '"\ntrack = "nightly"'), "a control stays the same"),
        (("request_count", "prompts = { seed = 1 }\nrequest_count"), "random prompts without a trace"),
        (("max_model_len", 'secret_environment = ["A"]\nmax_model_len'), "gets no secrets"),
        (("max_model_len", 'environment = { HF_TOKEN = "x" }\nmax_model_len'), "control.engine.environment.HF_TOKEN"),
        (("isl = 128", "isl = 4096"), "the control needs 4160 tokens of context"),
        (("isl = 128", "isll = 128"), "unknown key 'control.workload.isll'; did you mean 'isl'"),
    ],
)
def test_what_a_control_may_not_say(change: tuple[str, str], why: str) -> None:
    with pytest.raises(SuiteError) as caught:
        parse_suite(TEXT + CONTROL.replace(*change), "s")

    assert why in str(caught.value)
