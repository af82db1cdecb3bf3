"""What a person reads in the Prefect UI of `nightbench up`: the form of a night, and the pages of one that ran.

The pages are those of the pictures in docs/images, read in a browser that is logged in, under the server's policy.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from flows.form import suites
from infra.clouds.by_name import RENTED
from tests.flows.conftest import SUITE
from tests.flows.prefect_pictures import TABLES, Shown, pages_of_a_night, ui
from tests.warehouse.site.screenshots import chromium

pytestmark = [
    pytest.mark.prefect,
    pytest.mark.matrix,  # a service, a night and a browser
    pytest.mark.skipif(chromium() is None, reason="no Chromium: install Debian's package chromium"),
]
PNG = b"\x89PNG"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory, shared: Path | None) -> Iterator[dict[str, Shown]]:
    home = tmp_path_factory.mktemp("home")
    suite = home / "suite.toml"
    suite.write_text(SUITE.format(fault="", repeats=4, ttft_ms=60))
    with ui(home, shared) as shown:
        yield pages_of_a_night(shown, str(suite))


def test_the_form_explains_each_parameter_and_lists_every_suite_and_cloud(pages: dict[str, Shown]) -> None:
    lines = pages["form"].text.splitlines()

    titles = ("suite", "target", "poc", "resume", "wait", "force", "apply_rules", "machine")
    assert [line for line in lines if line.endswith("(Optional)")] == [f"{title} (Optional)" for title in titles]
    assert {*suites(), "default", "local", *RENTED} <= set(lines)
    offered = {"suite of the checkout", "another file", "known target", "another target"}
    assert offered | {"a new night", "name of a night", "every machine", "name of a machine"} <= set(lines)
    assert not {"str", "None"} & set(lines)
    assert "Run only the first scenario, once" in lines


def test_the_page_of_a_run_has_the_name_the_night_and_the_state(pages: dict[str, Shown]) -> None:
    lines = pages["run"].text.splitlines()

    assert any(line.startswith("nightly ") and line.endswith("suite.toml on local") for line in lines)
    assert any(line.startswith("night: 2") for line in lines)
    assert "Completed" in lines


def test_while_a_night_runs_its_progress_says_what_it_does(pages: dict[str, Shown]) -> None:
    (line,) = [one for one in pages["progress"].text.splitlines() if " of 8 runs" in one]

    # A run, or the last one, may be over until the page is read.
    assert re.fullmatch(r"[0-8] of 8 runs(; measure \w+ #\d \d+:\d\d.*)?(; about \d+:\d\d left)?", line)


@pytest.mark.parametrize("key", TABLES)
def test_a_table_of_a_night_has_its_headings_in_their_order(pages: dict[str, Shown], key: str) -> None:
    text = pages[key].text

    (headings,) = [line.split() for line in text.splitlines() if line.startswith(TABLES[key][0]) and "\t" in line]
    assert headings[: len(TABLES[key])] == list(TABLES[key])
    assert f"{key.capitalize()} of night " in text


def test_the_summary_says_what_was_measured_what_changed_and_where_to_read_more(pages: dict[str, Shown]) -> None:
    text = pages["summary"].text

    assert "8 runs" in text
    assert "confirmed changes: none" in text
    assert "The page of night 2" in text


def test_each_page_has_a_picture(pages: dict[str, Shown]) -> None:
    assert set(pages) == {"form", "progress", "run", *TABLES, "summary"}
    assert all(one.picture.startswith(PNG) for one in pages.values())
