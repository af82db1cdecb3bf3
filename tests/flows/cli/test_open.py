"""`nightbench open` prints the path of a night's page, and opens it where there is a display."""

from pathlib import Path

import pytest

from tests.flows.conftest import NightFixture
from tests.warehouse.folders import whole_night
from warehouse.load import load_night

NIGHTS = ("2026-03-01T010000Z", "2026-03-02T010000Z")


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    pages: list[str] = []

    def opens(uri: str) -> bool:
        pages.append(uri)
        return True

    monkeypatch.setattr("webbrowser.open", opens)
    return pages


def with_nights(house: NightFixture) -> NightFixture:
    for name in NIGHTS:
        whole_night(house.data, name)
        load_night(house.data, name)
    return house


def test_the_newest_night_or_the_named_one_is_written_where_it_has_no_page_and_its_path_printed(
    house: NightFixture, opened: list[str]
) -> None:
    with_nights(house)

    newest, named = house.call("open"), house.call("open", NIGHTS[0])

    pages = [str(house.data / "reports" / f"{name}.html") for name in reversed(NIGHTS)]
    assert [newest.stdout.strip(), named.stdout.strip()] == pages
    assert all(Path(page).exists() for page in pages)
    assert opened == []  # this output is not a terminal


def test_an_unknown_night_and_an_empty_folder_are_a_sentence(house: NightFixture) -> None:
    empty = house.call("open")
    whole_night(house.data, NIGHTS[0])
    unknown = house.call("open", "2026-01-01T010000Z")

    assert (empty.returncode, "run `nightbench run` first" in empty.stderr) == (2, True)
    assert (unknown.returncode, f"the newest nights there: {NIGHTS[0]}" in unknown.stderr) == (2, True)
