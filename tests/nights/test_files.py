"""The table of a night's files, and what follows from it for an upload and a fetch."""

import re

import pytest

from nights.files import FILES, declared, is_removed_by_resume
from nights.merge import FetchChanges, UploadChanges, fetch_changes, upload_changes
from nights.reference import PAGE, reference_markdown

EXAMPLES = {"lease": "0123456789ab", "position": "before", "machine": "large", "n": "0", "repeat": "0"}
OLD, NEW, OTHER = "1" * 64, "2" * 64, "3" * 64


def test_the_page_is_the_table() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference_markdown()


@pytest.mark.parametrize("kind", FILES, ids=lambda kind: kind.name)
def test_a_name_is_of_one_kind_and_of_the_form_that_the_page_shows(kind: object) -> None:
    (found,) = [one for one in FILES if one is kind]
    name = re.sub(r"<(\w+)>", lambda part: EXAMPLES.get(part[1], "0123456789abcdef"), found.name).rstrip("/")

    assert [one.name for one in FILES if one.matches(name)] == [found.name]


def test_a_name_that_no_night_has_is_of_no_kind() -> None:
    names = ("../night.json", "leases/../night.json", "night.json/", "evil.json", "servers/a.log", "night.json\n", "")

    assert [declared(name) for name in names] == [None] * len(names)


@pytest.mark.parametrize(
    ("here", "agreed", "there", "expected"),
    [
        ({"night.json": NEW}, {"night.json": OLD}, ["night.json"], (("night.json",), ())),  # changed here
        ({"night.json": OLD}, {"night.json": OLD}, ["night.json"], ((), ())),  # perhaps changed there
        ({"night.json": OLD}, {"night.json": OLD}, [], (("night.json",), ())),  # the bucket lost it
        ({"end.json": OLD}, {"end.json": OLD}, [], ((), ())),  # a resume elsewhere removed it
        ({}, {"end.json": OLD}, ["end.json"], ((), ("end.json",))),  # a resume here removed it
        ({}, {"night.json": OLD}, ["end.json"], ((), ())),  # another computer's night ended early
        ({"night.json": OLD}, None, ["end.json", "night.json"], (("night.json",), ("end.json",))),
    ],
)
def test_an_upload_puts_what_changed_here(
    here: dict[str, str], agreed: dict[str, str] | None, there: list[str], expected: tuple[tuple[str, ...], ...]
) -> None:
    assert upload_changes(here, agreed, there, is_removed_by_resume) == UploadChanges(*expected)


@pytest.mark.parametrize(
    ("here", "agreed", "there", "expected"),
    [
        ({}, None, {"night.json": OLD}, (("night.json",), (), ())),
        ({"night.json": OLD}, {"night.json": OLD}, {"night.json": NEW}, (("night.json",), (), ())),
        ({"night.json": NEW}, {"night.json": OLD}, {"night.json": OLD}, ((), (), ("night.json",))),
        ({"night.json": NEW}, {"night.json": OLD}, {"night.json": OTHER}, ((), (), ("night.json",))),
        ({"night.json": OLD}, None, {"night.json": NEW}, (("night.json",), (), ())),  # of an earlier version
        ({"night.json": OLD}, {}, {"night.json": NEW}, ((), (), ("night.json",))),  # an upload began and was killed
        ({"end.json": OLD}, {"end.json": OLD}, {}, ((), ("end.json",), ())),
        ({"end.json": NEW}, {"end.json": OLD}, {}, ((), (), ())),  # ended early again, here
        ({}, {"end.json": OLD}, {"end.json": OLD}, ((), (), ())),  # a resume here removed it
        ({"night.json": OLD}, {"night.json": OLD}, {}, ((), (), ())),  # the bucket lost it
        ({}, {"leases/a.json": OLD}, {"leases/a.json": OLD}, (("leases/a.json",), (), ())),  # lost here
    ],
)
def test_a_fetch_gets_what_changed_there_and_keeps_what_changed_here(
    here: dict[str, str], agreed: dict[str, str] | None, there: dict[str, str], expected: tuple[tuple[str, ...], ...]
) -> None:
    assert fetch_changes(here, agreed, there, is_removed_by_resume) == FetchChanges(*expected)
