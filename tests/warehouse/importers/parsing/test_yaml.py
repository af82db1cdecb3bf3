import pytest

from bench.errors import UnreadableResultError
from warehouse.importers.parsing.yaml import read_yaml


def test_every_scalar_is_text() -> None:
    assert read_yaml("r.yaml", "a: 1.0\nb: [x, {c: null}]\nd: 2026-01-01\n") == {
        "a": "1.0",
        "b": ["x", {"c": "null"}],
        "d": "2026-01-01",
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\nb: [", "r.yaml is not valid YAML"),
        ("a: &x [1]\nb: *x\n", "r.yaml line 2 has an alias"),
        ("a: 1\na: 2\n", "r.yaml line 2: the key 'a' occurs twice"),
        ("a: " + "[" * 100_000, "r.yaml line 1 is nested deeper than 100 levels"),
        ("[1]: 2\n", "r.yaml line 1 has a key that is not text"),
        ("a: 1\n---\na: 2\n", "r.yaml has 2 YAML documents"),
        ("# nothing\n", "r.yaml has 0 YAML documents"),
    ],
)
def test_what_cannot_be_read_is_said_with_its_place(text: str, said: str) -> None:
    with pytest.raises(UnreadableResultError, match=said.replace(".", r"\.")):
        read_yaml("r.yaml", text)
