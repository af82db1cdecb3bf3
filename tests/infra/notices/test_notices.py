"""An event is sent once to each address, by real HTTP and SMTP, and stays in the book until it was taken."""

import logging
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from datetime import timedelta
from email import message_from_string, policy
from io import StringIO
from pathlib import Path

import pytest
from pydantic import SecretStr

from bench.errors import LeaseError, LedgerError, UsageError
from infra.ledger.lease import LeaseInUseError
from infra.notices.book import KEEP, REFUSED_TRIES, EventBook
from infra.notices.event import Event
from infra.notices.kept_events import kept_events
from infra.notices.leases import ReaperRound, leaked, tell_of_reaped, telling_of_lease
from infra.notices.send import require_addresses, send_messages, send_now, shown
from infra.notices.tell import tell, tell_over, tell_standing
from infra.notices.tracker import TrackerError, open_tracker
from infra.settings import Settings
from tests.emulators.messages import Mailbox, Webhook, mailbox, webhook
from tests.emulators.virtual_clock import VirtualClock

STALE = Event("fault/stale-local", "act", "suite local has no data since night X", "look at it", "http://127.0.0.1/x")


@pytest.fixture
def hook() -> Iterator[Webhook]:
    with webhook() as found:
        yield found


@pytest.fixture
def mail() -> Iterator[Mailbox]:
    with mailbox() as found:
        yield found


def test_an_event_is_sent_once_while_it_stands_and_once_when_it_is_over(tmp_path: Path, hook: Webhook) -> None:
    urls = [f"json://{hook.url}/"]
    for standing in ([STALE], [STALE], [], [], [STALE]):
        book = EventBook(tmp_path, urls)
        book.report_standing(("fault",), standing)
        send_messages(book, urls, pytest.fail)

    assert hook.titles == [STALE.title, f"over: {STALE.title}", STALE.title]
    assert hook.taken[0]["message"] == "look at it\nhttp://127.0.0.1/x"
    assert hook.taken[0]["type"] == "warning"
    assert EventBook(tmp_path, urls).standing() == [STALE.title]


def test_an_address_that_was_corrected_or_named_later_gets_what_stands_once(tmp_path: Path, hook: Webhook) -> None:
    mistyped, right = SecretStr("json://127.0.0.1:9/"), SecretStr(f"json://{hook.url}/")
    leak = leaked("512345678", "500")
    for urls in ((), (mistyped,), (right,), (right,), (mistyped, right)):
        settings = Settings(data=tmp_path, notify_urls=urls)
        tell_standing(settings, ("fault",), [STALE], list[str]().append, is_kept=True)
        is_new = tell(settings, leak, list[str]().append, is_kept=True)
        assert is_new == (urls == ())

    assert hook.titles == [STALE.title, leak.title]


def test_what_an_earlier_version_sent_is_not_sent_again(tmp_path: Path, hook: Webhook) -> None:
    urls = [f"json://{hook.url}/"]
    book = EventBook(tmp_path, urls)
    book.report(STALE)
    send_messages(book, urls, pytest.fail)
    with closing(sqlite3.connect(tmp_path / "events.sqlite")) as file:
        file.executescript("DROP TABLE given; DROP TABLE details; DROP TABLE taken")

    for _again in range(2):
        assert not book.report(STALE)
    send_messages(book, urls, pytest.fail)

    assert hook.titles == [STALE.title]


def test_events_of_other_kinds_do_not_end_with_these(tmp_path: Path) -> None:
    book = EventBook(tmp_path, [])
    book.report(Event("release/m-1", "act", "m-1 was not released"))

    book.report_standing(("fault",), [])

    assert book.standing() == ["m-1 was not released"]


def test_a_machine_that_was_not_released_is_told_and_one_that_its_night_uses_is_not(
    tmp_path: Path, hook: Webhook
) -> None:
    settings = Settings(data=tmp_path, notify_urls=(SecretStr(f"json://{hook.url}/"),))
    for error in (LeaseInUseError("in use"), LeaseError("still there")):
        with suppress(LeaseError), telling_of_lease(settings, tmp_path / "ledger.sqlite", "one", pytest.fail):
            raise error

    assert hook.titles == ["not released: one"]
    assert "still there" in hook.taken[0]["message"]


@pytest.mark.parametrize(
    ("cloud", "failed", "set_up", "is_over"),
    [
        ("digitalocean", {}, ["local"], False),
        ("digitalocean", {}, ["local", "command"], False),
        ("digitalocean", {"digitalocean": "401"}, ["local", "digitalocean"], False),
        ("digitalocean", {"command": "401"}, ["local", "digitalocean", "command"], True),
        ("ssh:me@host:22", {}, ["local"], True),  # one whose lease is closed is no more among the clouds
        ("local", {}, ["local"], True),
        (None, {}, ["local", "ssh:me@host:22"], False),
        (None, {}, ["local", "command"], True),
    ],
)
def test_a_machine_is_said_to_be_gone_only_where_its_cloud_was_searched(
    tmp_path: Path, cloud: str | None, failed: dict[str, str], set_up: list[str], *, is_over: bool
) -> None:
    event = leaked("one", "500", cloud)
    settings = Settings(data=tmp_path)
    tell(settings, event, pytest.fail, is_kept=True)

    changed = tell_of_reaped(settings, ReaperRound(failed, {}, set_up), pytest.fail, is_kept=True)

    assert changed.over == (((event.key, event.title),) if is_over else ())


def test_a_message_that_one_address_refuses_is_sent_later_and_not_twice_to_the_other(
    tmp_path: Path, hook: Webhook, mail: Mailbox
) -> None:
    urls = [f"json://{hook.url}/", f"mailto://{mail.address}?from=nights@example.com&to=team@example.com"]
    mail.refuses = True
    said: list[str] = []
    book = EventBook(tmp_path, urls)
    book.report(STALE)
    assert send_messages(book, urls, said.append) == 1
    assert len(said) == 1
    assert "was not sent to mailto://127.0.0.1: it stays in the book" in said[0]

    mail.refuses = False
    assert send_messages(EventBook(tmp_path, urls), urls, pytest.fail) == 1

    assert hook.titles == [STALE.title]
    assert [STALE.title in one for one in mail.mails] == [True]
    assert book.messages() == []


def test_a_mail_has_each_line_of_the_text_and_shows_what_looks_like_a_tag(mail: Mailbox) -> None:
    body = "cat: <node-3>: No such file <img src=http://evil.example/x.png>\nnightbench run --resume N"
    url = f"mailto://{mail.address}?from=nights@example.com&to=team@example.com"

    send_now(Event("night.failed/N", "act", "night N: failed", body), [url], pytest.fail)

    parts = message_from_string(mail.mails[0], policy=policy.default).walk()
    plain, html = [str(part.get_content()) for part in parts if part.get_content_maintype() == "text"]
    assert body in plain.replace("\r\n", "\n")
    assert "&lt;node-3&gt;" in html
    assert "<img" not in html
    assert "<br" in html


def test_a_recipient_that_is_refused_does_not_have_the_others_get_the_mail_again(tmp_path: Path, mail: Mailbox) -> None:
    mail.refused = b"left@example.com"
    urls = [f"mailto://{mail.address}?from=nights@example.com&to=a@example.com,left@example.com,b@example.com"]
    book, said = EventBook(tmp_path, urls), list[str]()
    for event in (STALE, Event("night/1", "know", "a second message")):
        book.report(event)
    for _ in range(3):
        send_messages(book, urls, said.append)
    assert sorted(mail.taken_by) == ["a@example.com"] * 2 + ["b@example.com"] * 2
    assert "was not sent to some recipients of mailto://127.0.0.1: it stays" in said[0]

    mail.refused = b""
    assert send_messages(book, urls, pytest.fail) == 2

    assert mail.taken_by[4:] == ["left@example.com"] * 2
    assert book.messages() == []


def test_two_that_send_at_the_same_time_send_each_message_once(tmp_path: Path, hook: Webhook) -> None:
    urls, said = [f"json://{hook.url}/"], list[str]()
    book = EventBook(tmp_path, urls)
    book.report(STALE)

    with ThreadPoolExecutor() as threads, EventBook(tmp_path, urls).sending(pytest.fail):
        sending = [threads.submit(send_messages, EventBook(tmp_path, urls), urls, said.append) for _ in range(4)]
        while len(said) < len(sending):  # each waits for us
            time.sleep(0.01)
        assert hook.titles == []

    assert [one.result() for one in sending].count(1) == 1
    assert hook.titles == [STALE.title]
    assert "another process is sending messages" in said[0]


def test_an_address_that_hangs_costs_its_patience_once_and_the_others_get_theirs(
    tmp_path: Path, hook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("infra.notices.send.PATIENCE_S", 0.5)
    with webhook() as hanging:
        hanging.is_hanging = True
        urls = [f"json://{hanging.url}/", f"json://{hook.url}/"]
        book = EventBook(tmp_path, urls)
        book.report(STALE)
        book.report(Event("night/1", "know", "a second message"))

        assert send_messages(book, urls, lambda _line: None) == 2

        assert hanging.begun == 1
    assert hook.titles == [STALE.title, "a second message"]
    assert [message.title for message in book.messages()] == [STALE.title, "a second message"]


def test_a_message_that_no_address_took_for_a_week_is_dropped(tmp_path: Path) -> None:
    clock = VirtualClock(tmp_path / "clock")
    book = EventBook(tmp_path, ["json://127.0.0.1:9/"], clock)
    book.report(STALE)
    assert len(book.messages()) == 1

    clock.sleep((KEEP + timedelta(hours=1)).total_seconds())

    assert book.messages() == []


def test_the_book_holds_no_password_of_an_address(tmp_path: Path) -> None:
    EventBook(tmp_path, ["json://user:hunter2@127.0.0.1/"]).report(STALE)

    assert b"hunter2" not in (tmp_path / "events.sqlite").read_bytes()


def test_an_address_that_apprise_does_not_understand_is_named_without_its_password() -> None:
    with pytest.raises(UsageError, match=r"bogus://\.\.\. is not an address that apprise understands") as raised:
        require_addresses(["bogus://user:hunter2@example.com/x"])

    assert "hunter2" not in str(raised.value)


def test_an_address_that_apprise_refuses_is_not_logged_with_its_token(
    capfd: pytest.CaptureFixture[str],
) -> None:
    url, kept = "tgram://SECRETBOTTOKEN/1234", StringIO()
    root, handler = logging.getLogger(), logging.StreamHandler(kept)  # `caplog` has what does not propagate, too
    root.addHandler(handler)
    with pytest.raises(UsageError):
        require_addresses([url])
    send_now(STALE, [url], logging.getLogger("nightbench").error)
    root.removeHandler(handler)

    assert "was not sent to tgram://..." in kept.getvalue()
    assert "SECRETBOTTOKEN" not in kept.getvalue() + "".join(capfd.readouterr())


def test_a_book_that_is_damaged_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "events.sqlite").write_bytes(b"no database" * 100)

    with pytest.raises(LedgerError, match=r"events.sqlite cannot be used .*; no message is sent"):
        EventBook(tmp_path, []).report(STALE)


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("json://user:word@hook.example/x", "json://hook.example"),
        ("opsgenie://273b322c-1f6f-11ee-be56-0242ac120002/", "opsgenie://..."),
        ("ntfys://a-secret-topic", "ntfys://..."),
        ("json://team:pa]ss@127.0.0.1:9/hook", "json://..."),
        ("//a]secret", "..."),
    ],
)
def test_an_address_whose_first_part_may_be_a_key_is_shown_by_its_service(url: str, text: str) -> None:
    assert shown(url) == text


def test_a_message_that_is_refused_for_good_keeps_back_no_later_one(tmp_path: Path) -> None:
    book = EventBook(tmp_path, ["json://127.0.0.1:9/"])
    odd, alarm = Event("odd", "know", "odd", "", ""), Event("alarm", "act", "alarm", "", "")
    book.report(odd)
    for _ in range(REFUSED_TRIES):
        assert send_messages(book, ["json://127.0.0.1:9/"], list[str]().append) == 0
    book.report(Event("other", "know", "other", "", ""))
    book.report(alarm)

    assert [message.title for message in book.messages()] == ["alarm", "other", "odd"]


def test_what_is_told_is_sent_although_the_book_cannot_be_locked_or_its_text_is_no_utf8(
    tmp_path: Path, hook: Webhook
) -> None:
    settings = Settings(data=tmp_path, notify_urls=(SecretStr(f"json://{hook.url}/"),))
    (tmp_path / "events.lock").mkdir()
    said = list[str]()

    assert tell(settings, Event("a/\udcff", "act", "bad \udcff", "", ""), said.append)

    assert "the message stays in the book" in said[0]
    assert len(hook.titles) == 1


def test_a_tracker_with_a_port_that_is_no_number_is_an_error_of_ours() -> None:
    tracker = open_tracker(
        Settings(tracker_url="https://git.example:8o80/api/v4/projects/1", tracker_token=SecretStr("t"))
    )

    assert tracker is not None
    with pytest.raises(TrackerError, match="cannot be reached: InvalidURL"):
        tracker.require_access()


@pytest.mark.parametrize("name", ["plain", "gpu#1", "what?", "100%25"])
def test_the_events_of_a_folder_with_any_name_are_read_and_nothing_is_written(tmp_path: Path, name: str) -> None:
    data = tmp_path / name
    EventBook(data, []).report(STALE)

    assert [one.title for one in kept_events(data, pytest.fail)] == [STALE.title]
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_an_event_whose_key_is_no_utf8_stands_until_it_is_over(tmp_path: Path, hook: Webhook) -> None:
    settings = Settings(data=tmp_path, notify_urls=(SecretStr(f"json://{hook.url}/"),))
    key = "a/\udcff"
    for _ in range(2):
        tell_standing(settings, {"a"}, [Event(key, "act", "one")], pytest.fail)
    assert hook.titles == ["one"]

    tell_over(settings, [key], pytest.fail)
    assert hook.titles == ["one", "over: one"]
