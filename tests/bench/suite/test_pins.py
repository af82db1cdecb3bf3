from pathlib import Path

import pytest

from bench.errors import SuiteError
from bench.suite.parse import parse_suite
from bench.suite.pins import fill_pins, open_pins, require_pins

FILE = Path(__file__).parents[3] / "suites" / "llama-3.3-70b-mi300x.toml"
TEXT = FILE.read_text()
SUITE = parse_suite(TEXT, "llama.toml")
REVISION, DIGEST = "NIGHTBENCH_LLAMA_3_3_70B_REVISION", "NIGHTBENCH_VLLM_ROCM_DIGEST"
SET = {REVISION: "0123456789" * 4, DIGEST: f"sha256:{'ab' * 32}"}


def _line(start: str) -> int:
    return next(number for number, line in enumerate(TEXT.splitlines(), 1) if line.startswith(start))


def test_an_open_pin_is_named_with_its_line_and_what_to_do() -> None:
    with pytest.raises(SuiteError) as caught:
        require_pins(SUITE, TEXT, "llama.toml")

    assert str(caught.value).startswith(
        f"llama.toml:{_line('source')}: model.source is an open pin: set {REVISION} to "
    )


def test_a_filled_suite_has_nothing_open() -> None:
    filled = fill_pins(SUITE, SET, TEXT, "llama.toml")

    require_pins(filled, TEXT, "llama.toml")
    assert filled.model.source == f"hf:meta-llama/Llama-3.3-70B-Instruct@{SET[REVISION]}"
    assert filled.engine.image == f"vllm/vllm-openai-rocm@{SET[DIGEST]}"


def test_what_is_filled_in_moves_the_ids() -> None:
    one, other = (fill_pins(SUITE, SET | {REVISION: digit * 40}, TEXT, "llama.toml") for digit in "12")

    assert one.expand()[0].scenario_id != other.expand()[0].scenario_id


def test_a_pin_that_is_not_set_stays_open() -> None:
    assert set(open_pins(fill_pins(SUITE, {REVISION: SET[REVISION]}, TEXT, "llama.toml"))) == {DIGEST}


@pytest.mark.parametrize(
    ("name", "value", "start"),
    [(REVISION, "main", "source"), (DIGEST, "v0.32.0", 'image = "vllm'), (DIGEST, "ab" * 32, 'image = "vllm')],
)
def test_a_value_that_can_move_is_refused_at_the_line_that_asks_for_it(name: str, value: str, start: str) -> None:
    with pytest.raises(SuiteError) as caught:
        fill_pins(SUITE, {name: value}, TEXT, "llama.toml")

    assert str(caught.value).startswith(f"llama.toml:{_line(start)}: ")
    assert f"{name} is {value!r}: set it to " in str(caught.value)


def test_a_suite_without_open_pins_is_left_as_it_is() -> None:
    local = FILE.with_name("local.toml")
    suite = parse_suite(local.read_text(), local.name)

    assert fill_pins(suite, SET, local.read_text(), local.name) == suite
