"""An event that lasts has one issue: rewritten while it lasts, closed when it is over, and never a second one."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from bench.errors import UsageError
from infra.notices.event import Event
from infra.notices.issue_book import IssueBook
from infra.notices.issues import SETTLED, sync_issues
from infra.notices.leases import ReaperRound, leaked, tell_of_reaped
from infra.notices.tell import keep_issues, tell, tell_over, tell_standing
from infra.notices.tracker import open_tracker
from infra.settings import Settings
from tests.emulators.tracker import LIMITED, REFUSED, Answer, Site, TrackerEmulator, tracker
from tests.emulators.virtual_clock import VirtualClock

STALE = Event("data.stale/local", "act", "suite local has no data", "nights failed", "https://pages.example/n.html")
ALL_WELL: list[Event] = []
LATER = f"the issue of {STALE.title!r} was not written: "


@pytest.fixture(params=["github", "gitlab"])
def site(request: pytest.FixtureRequest) -> Iterator[TrackerEmulator]:
    name: Site = request.param
    with tracker(name) as found:
        yield found


@pytest.fixture
def github() -> Iterator[TrackerEmulator]:
    with tracker("github") as found:
        yield found


def settings_of(data: Path, site: TrackerEmulator, **more: Any) -> Settings:
    return Settings(data=data, tracker_url=site.url, tracker_token=SecretStr(site.token), **more)


def stands(settings: Settings, *events: Event) -> list[str]:
    """What a check says that finds these events."""
    said: list[str] = []
    tell_standing(settings, ("data.stale",), events, said.append)
    return said


def test_an_event_has_one_issue_that_is_rewritten_while_it_lasts_and_closed_when_it_is_over(
    tmp_path: Path, site: TrackerEmulator
) -> None:
    settings = settings_of(tmp_path, site)
    changed = Event(STALE.key, "act", "suite local has no data for a week", "nights failed", STALE.link)

    said = [line for events in ([STALE], [STALE], [changed], [], []) for line in stands(settings, *events)]

    assert said == []
    assert site.states == [(changed.title, "closed")]
    assert [one.split()[0] for one in site.asked] == ["POST", *(["PATCH" if site.site == "github" else "PUT"] * 2)]
    assert "Over since " in site.text(0)
    assert f"{changed.title}\nnights failed\n" in site.text(0)
    assert "<https://pages.example/n.html>" in site.text(0)


def test_the_issue_of_a_machine_stays_open_until_its_cloud_was_searched(
    tmp_path: Path, github: TrackerEmulator
) -> None:
    settings = settings_of(tmp_path, github)
    tell(settings, leaked("one", "500", "digitalocean"), pytest.fail)

    tell_of_reaped(settings, ReaperRound({}, {}, ["local"]), pytest.fail)
    before = github.states
    tell_of_reaped(settings, ReaperRound({}, {}, ["local", "digitalocean"]), pytest.fail)

    assert before == [("not released: one", "open")]
    assert github.states == [("not released: one", "closed")]


def test_an_event_that_begins_again_has_another_issue(tmp_path: Path, github: TrackerEmulator) -> None:
    settings = settings_of(tmp_path, github)

    for events in ([STALE], [], [STALE]):
        stands(settings, *events)

    assert github.states == [(STALE.title, "closed"), (STALE.title, "open")]


def test_the_end_of_a_night_and_a_test_message_open_no_issue_and_other_kinds_end_by_their_key(
    tmp_path: Path, github: TrackerEmulator
) -> None:
    settings = settings_of(tmp_path, github)
    for kind in ("night.finished", "night.failed", "test", "check.failed"):
        tell(settings, Event(f"{kind}/x", "act", kind), pytest.fail)
    tell_over(settings, ["check.failed/x"], pytest.fail)

    assert github.states == [("check.failed", "closed")]


def test_an_issue_whose_creation_was_not_answered_is_found_and_not_created_again(
    tmp_path: Path, site: TrackerEmulator
) -> None:
    clock, said = VirtualClock(tmp_path / "clock"), list[str]()
    book, opened = IssueBook(tmp_path, clock), open_tracker(settings_of(tmp_path, site))
    assert opened is not None
    book.report(STALE)
    site.loses_answers = True
    sync_issues(book, opened, said.append)
    site.loses_answers = False
    site.issues += [{**site.issues[0], "title": "of others", "body": None, "description": None} for _ in range(25)]
    sync_issues(book, opened, pytest.fail)  # too early to know: its list may lag
    assert len(site.asked) == 1

    clock.sleep(SETTLED.total_seconds())
    sync_issues(book, opened, pytest.fail)

    assert [title for title, _state in site.states].count(STALE.title) == 1
    assert book.due() == []
    assert len(said) == 1


def test_of_two_processes_that_found_the_same_one_opens_the_issue(tmp_path: Path) -> None:
    one, other = IssueBook(tmp_path), IssueBook(tmp_path)
    one.report(STALE)
    (mine,), (same,) = one.due(), other.due()

    assert one.begin(mine)
    assert not other.begin(same)


def test_an_issue_whose_creation_did_not_arrive_is_created_later(tmp_path: Path, github: TrackerEmulator) -> None:
    clock = VirtualClock(tmp_path / "clock")
    book, opened = IssueBook(tmp_path, clock), open_tracker(settings_of(tmp_path, github))
    assert opened is not None
    book.report(STALE)
    book.begin(book.due()[0])  # and the process is killed

    clock.sleep(SETTLED.total_seconds())
    sync_issues(book, opened, pytest.fail)

    assert github.states == [(STALE.title, "open")]


def test_an_issue_that_somebody_else_closed_or_deleted_stays_so_until_its_event_is_over(
    tmp_path: Path, site: TrackerEmulator
) -> None:
    settings = settings_of(tmp_path, site)
    stands(settings, STALE)
    for state in ("closed", "deleted"):
        site.issues[-1]["state"] = state
        for title in ("two weeks", "three weeks"):
            assert stands(settings, Event(STALE.key, "act", title)) == []
        asked = len(site.asked)
        assert stands(settings, Event(STALE.key, "act", "four weeks")) == []
        assert len(site.asked) == asked
        assert stands(settings) == []
        stands(settings, STALE)

    assert [state for _title, state in site.states] == ["closed", "deleted", site.issues[-1]["state"]]
    assert site.states[-1] == (STALE.title, "open" if site.site == "github" else "opened")


def test_a_quiet_event_opens_no_issue_and_the_one_that_it_has_stays(tmp_path: Path, github: TrackerEmulator) -> None:
    settings = settings_of(tmp_path, github)
    other = Event("data.stale/other", "act", "another suite")
    stands(settings, STALE)
    keep_issues(settings, ("data.stale",), [STALE, other], [], pytest.fail)

    keep_issues(settings, ("data.stale",), [], [STALE.key, other.key], pytest.fail)
    tell_over(settings, ["any/other"], pytest.fail)

    assert github.states == [(STALE.title, "open")]
    assert len(github.asked) == 1


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ((500, b"<h1>oops</h1>", {}), "is busy or limits the rate of requests (HTTP 500)"),
        ((401, REFUSED, {}), "refuses NIGHTBENCH_TRACKER_TOKEN (HTTP 401: Bad credentials)"),
        ((403, {"message": "API rate limit exceeded"}, LIMITED), "limits the rate of requests (HTTP 403: API rate"),
        (
            (403, {"message": "Resource not accessible by personal access token"}, {}),
            "refuses NIGHTBENCH_TRACKER_TOKEN",
        ),
        ((429, b"Retry later\n", {"retry-after": "60"}), "is busy or limits the rate of requests (HTTP 429)"),
        ((404, {"message": "Not Found"}, {}), "has no such project, shows it to no such token"),
        ((410, {"message": "Issues has been disabled in this repository."}, {}), "has its issues off"),
        ((301, {}, {"location": "https://elsewhere.example/"}), "set NIGHTBENCH_TRACKER_URL to its new address"),
        ((422, {"message": "Validation Failed"}, {}), "refuses it (HTTP 422: Validation Failed)"),
        ((200, b"<html>a login</html>", {}), "answers no JSON"),
        ((201, {"number": "seven"}, {}), "answers something else than an issue"),
        ((500, {"message": "no tracker-token-of-tests here"}, {}), f"HTTP 500: no {'*' * 22} here"),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else None,
)
def test_what_a_tracker_refuses_is_a_sentence_and_is_tried_again(
    tmp_path: Path, github: TrackerEmulator, fault: Answer, sentence: str
) -> None:
    settings = settings_of(tmp_path, github)
    github.fault = fault

    (said,) = stands(settings, STALE)

    assert said.startswith(LATER)
    assert sentence in said
    assert said.endswith("; the next night or `nightbench check` tries again")
    assert github.token not in said
    assert [issue.key for issue in IssueBook(tmp_path).due()] == [STALE.key]


def test_a_tracker_that_hangs_sends_too_much_or_is_gone_is_a_sentence_and_asked_once_a_round(
    tmp_path: Path, github: TrackerEmulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("infra.notices.tracker.ANSWER_S", 0.3)
    monkeypatch.setattr("infra.notices.tracker.ANSWER_BYTES", 1000)
    settings = settings_of(tmp_path, github)
    github.is_hanging = True
    (hung,) = stands(settings, STALE, Event("data.stale/b", "act", "b"))
    github.is_hanging, github.fault = False, (200, b" " * 2000, {})
    monkeypatch.setattr("infra.notices.tracker.ANSWER_S", 30.0)  # the next two answer soon, on a busy computer too
    (large,) = stands(settings, STALE, Event("data.stale/b", "act", "b"))
    elsewhere = settings.model_copy(update={"tracker_url": "http://127.0.0.1:9/repos/a/b"})
    (gone,) = stands(elsewhere, STALE, Event("data.stale/c", "act", "c"))

    assert "GitHub at 127.0.0.1 gives no complete answer in 0.3 s; the next night or" in hung
    assert "GitHub at 127.0.0.1 answers more than 1000 bytes" in large
    assert "GitHub at 127.0.0.1 cannot be reached: ConnectError" in gone


def test_an_address_or_a_token_that_cannot_be_one_is_a_sentence_without_the_token(tmp_path: Path) -> None:
    good, secret = "https://api.github.com/repos/a/b", "s3cret token"
    bad = ["https://github.com/a/b", "http://git.example/api/v4/projects/1", "https://u:p@git.example/repos/a/b"]
    for url in bad:
        with pytest.raises(UsageError, match="must be the project's address in the API"):
            open_tracker(Settings(data=tmp_path, tracker_url=url, tracker_token=SecretStr("x")))
    for token in (None, SecretStr(secret), SecretStr("")):
        with pytest.raises(UsageError, match="is not set, or has spaces") as raised:
            open_tracker(Settings(data=tmp_path, tracker_url=good, tracker_token=token))
        assert secret not in str(raised.value)

    said: list[str] = []
    tell_standing(Settings(data=tmp_path, tracker_url=bad[0]), ("data.stale",), [STALE], said.append)
    assert said[0].startswith("no issue was written: NIGHTBENCH_TRACKER_URL must be")


def test_neither_the_book_nor_the_tracker_as_text_has_the_token(tmp_path: Path, github: TrackerEmulator) -> None:
    settings = settings_of(tmp_path, github)
    stands(settings, STALE)

    assert github.token.encode() not in (tmp_path / "events.sqlite").read_bytes()
    assert github.token not in repr(open_tracker(settings)) + repr(settings)
