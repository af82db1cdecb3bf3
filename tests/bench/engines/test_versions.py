"""The version that an engine reports beside the one that was requested."""

import pytest

from bench.engines.versions import is_release, llama_cpp_tag


@pytest.mark.parametrize(
    ("found", "asked", "is_same"),
    [
        ("0.32.0+cpu", "0.32.0", True),
        ("0.32.0", "0.32.1", False),
        ("b11434-unknown", "b11434", True),
        ("b11434-0c1e570", "b11434-0c1e570", True),
        ("b11434-0c1e570", "b11434-fffffff", False),
        ("b11435-unknown", "b11434", False),
        ("b1-0c1e570", "b1-fffffff", False),
    ],
)
def test_a_server_reports_the_release_asked_for_with_more_about_its_build(
    found: str, asked: str, is_same: bool
) -> None:
    assert is_release(found, asked) == is_same


@pytest.mark.parametrize(
    ("version", "tag"),
    [("b11434", "b11434"), ("b9548-unknown", "b9548"), ("b1-0c1e570", None), ("b0-unknown", None), ("0.32.0", None)],
)
def test_a_build_without_its_number_names_no_tag(version: str, tag: str | None) -> None:
    assert llama_cpp_tag(version) == tag
