from datetime import UTC, datetime, timedelta

import pytest

from bench.machine.names import ImageName, MachineName, TagName, VolumeName, is_alike, last_used, used_tag

UNTIL = datetime(2026, 11, 21, 12, tzinfo=UTC)
NAME = MachineName("01k9x", 2, UNTIL)


def test_a_name_says_whose_which_try_and_until_when() -> None:
    assert str(NAME) == "nb-01k9x-a2-x1795262400"
    assert NAME.tags == ("nb", "nb-run:01k9x", "nb-exp:1795262400")


def test_a_name_is_read_back_whole() -> None:
    assert MachineName.parse(str(NAME)) == NAME


def test_clouds_may_change_the_case_of_a_name() -> None:
    assert MachineName.parse("NB-01K9X-A2-X1795262400") == NAME


@pytest.mark.parametrize("end", ["", "?", "soon", "-5", "1e9", "99999999999999999999"])
def test_a_deadline_that_cannot_be_read_has_passed(end: str) -> None:
    found = MachineName.parse(f"nb-01k9x-a1-x{end}")

    assert found is not None
    assert found.is_past(UNTIL - timedelta(days=9000))


@pytest.mark.parametrize("name", ["nb-web", "nb-01k9x", "nbx-01k9x-a1-x5", "my-nb-01k9x-a1-x5", "nb-01k9x-x5", "nb-"])
def test_a_name_built_otherwise_is_not_ours(name: str) -> None:
    assert MachineName.parse(name) is None


def test_a_name_is_past_after_its_moment_and_not_before() -> None:
    assert not NAME.is_past(UNTIL)
    assert NAME.is_past(UNTIL + timedelta(seconds=1))


def test_an_image_is_no_machine() -> None:
    image = ImageName("0af3", UNTIL)

    assert str(image) == "nb-img-0af3-x1795262400"
    assert ImageName.parse(str(image)) == image
    assert MachineName.parse(str(image)) is None
    assert MachineName.parse("nb-img-a1-x5") is None


def test_a_volume_is_neither_machine_nor_image() -> None:
    volume = VolumeName("0123456789ab", "atl1", UNTIL)

    assert str(volume) == "nb-vol-0123456789ab-atl1-x1795262400"
    assert VolumeName.parse(str(volume)) == volume
    assert MachineName.parse(str(volume)) is None
    assert MachineName.parse("nb-vol-a1-x5") is None
    assert ImageName.parse(str(volume)) is None
    assert len(volume.label) == 16  # the longest that ext4 takes
    assert (volume.is_past(UNTIL), volume.is_past(UNTIL + timedelta(seconds=1))) == (False, True)


def test_a_volumes_tags_say_when_it_was_last_used() -> None:
    tags = (used_tag(UNTIL - timedelta(days=1)), used_tag(UNTIL), "nb", "nb-used:soon", "web-used:1895262400")

    assert last_used(tags) == UNTIL
    assert last_used(("nb", "nb-used:soon")) is None


@pytest.mark.parametrize(
    ("name", "tags", "alike"),
    [("nb-web", (), True), ("web", ("nb",), True), ("web", ("NB-run:1",), True), ("web", ("nbx",), False)],
)
def test_what_bears_our_prefix_or_tag_looks_like_ours(name: str, tags: tuple[str, ...], alike: bool) -> None:
    assert is_alike(name, tags) is alike


@pytest.mark.parametrize(
    ("tag", "found"),
    [
        ("nb", TagName("")),
        ("nb-run:01k9x", TagName("run")),
        ("NB-EXP:1795262400", TagName("exp", UNTIL)),
        ("nb-exp:soon", TagName("exp")),
        (used_tag(UNTIL), TagName("used", UNTIL)),
        ("nb-like", None),
        ("nb-run", None),
        ("nbx", None),
        ("production", None),
    ],
)
def test_a_tag_of_ours_is_read_back(tag: str, found: TagName | None) -> None:
    assert TagName.parse(tag) == found
