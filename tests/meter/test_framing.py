"""An answer reads the same however its bytes are split over reads."""

import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meter.exchange import Exchange
from meter.framing import Framing
from meter.outcome import judge
from meter.prepare import PreparedRequest
from meter.prompts import Prompt
from meter.sse import read_answer, split_events

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
USAGE = {"prompt_tokens": 3, "completion_tokens": 2}

REQUEST = PreparedRequest(0, "measured", "id", b"", "hash", Prompt({}, "1.0", 8, 16, 0))


def chunk_event(text: str, ids: list[int], finish: str | None) -> bytes:
    choice = {"index": 0, "text": text, "token_ids": ids, "finish_reason": finish}
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


BODY = (
    b": ping\n\n"
    + chunk_event("a", [264], None)
    + chunk_event("b\r\n0\r\n\r\n", [265], "length")
    + b"data: " + json.dumps({"choices": [], "usage": USAGE}).encode() + b"\n\n"
    + b"data: [DONE]\n\n"
)  # fmt: skip


def in_chunks(body: bytes, size: int, *, extension: bytes = b"", trailer: bytes = b"") -> bytes:
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x%s\r\n%s\r\n" % (len(part), extension, part) for part in parts) + b"0\r\n" + trailer + b"\r\n"


def receive(raw: bytes, cuts: list[int]) -> Exchange:
    """Feed an answer in reads that end at these offsets; each read's time is the offset where it ends."""
    exchange = Exchange(REQUEST)
    edges = [0, *sorted({cut for cut in cuts if 0 < cut < len(raw)}), len(raw)]
    is_over = False
    for start, end in pairwise(edges):
        assert not is_over
        exchange.reads.append((end, [], raw[start:end]))
        is_over = exchange.framing.feed(raw[start:end])
    assert is_over
    return exchange


def is_over(raw: bytes) -> bool:
    return Framing().feed(raw)


@settings(deadline=None)
@given(
    size=st.integers(1, 400),
    cuts=st.lists(st.integers(1, 2000)),
    extension=st.sampled_from([b"", b";a=b", b" "]),
    trailer=st.sampled_from([b"", b"x: y\r\n"]),
)
def test_any_split_gives_the_same_answer(size: int, cuts: list[int], extension: bytes, trailer: bytes) -> None:
    raw = HEAD + in_chunks(BODY, size, extension=extension, trailer=trailer)

    exchange = receive(raw, cuts)
    answer = read_answer(exchange)

    assert exchange.framing.is_complete
    assert exchange.framing.keeps_alive
    assert answer.body == BODY
    assert [event.tokens for event in answer.token_events] == [1, 1]
    assert answer.text == "ab\r\n0\r\n\r\n"
    assert judge(exchange, answer, 2, {"ignore_eos": True}) == ("ok", None)


@settings(deadline=None)
@given(size=st.integers(1, 400))
def test_one_byte_a_read_gives_each_event_the_time_of_its_last_byte(size: int) -> None:
    raw = HEAD + in_chunks(BODY, size)

    exchange = receive(raw, list(range(len(raw))))
    answer = read_answer(exchange)

    assert answer.headers_at_ns == len(HEAD)
    reads = [event.read for event in answer.token_events]
    for read in reads:
        before = receive_body(raw[: read + 1])
        assert before.endswith(b"\n\n")
    assert len(set(reads)) == 2


def receive_body(raw: bytes) -> bytes:
    framing = Framing()
    framing.feed(raw)
    return b"".join(raw[start:end] for start, end in framing.segments)


@settings(deadline=None)
@given(cut=st.integers(1, 5))
def test_an_answer_is_not_over_before_its_last_byte(cut: int) -> None:
    raw = HEAD + in_chunks(BODY, 50)

    assert not is_over(raw[:-cut])
    assert is_over(raw)


@settings(deadline=None)
@given(cuts=st.lists(st.integers(1, 200)))
def test_a_body_with_a_length_is_over_at_its_length(cuts: list[int]) -> None:
    raw = b'HTTP/1.1 500 Oh\r\nContent-Length: 17\r\n\r\n{"error": "dead"}'

    exchange = receive(raw, cuts)

    assert exchange.framing.is_complete
    assert read_answer(exchange).body == b'{"error": "dead"}'
    assert judge(exchange, read_answer(exchange), 2, {}) == ("http", 'HTTP 500: {"error": "dead"}')


def test_an_empty_body_is_over_with_its_head() -> None:
    assert is_over(b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n")
    assert is_over(b"HTTP/1.1 204 No\r\n\r\n")


def test_a_body_without_length_is_over_when_the_connection_is() -> None:
    framing = Framing()

    assert not framing.feed(b"HTTP/1.1 200 OK\r\n\r\ndata: x\n\n")
    assert framing.close()
    assert not framing.keeps_alive


def test_a_chunked_answer_cut_by_the_end_of_the_connection_is_not_complete() -> None:
    framing = Framing()
    framing.feed((HEAD + in_chunks(BODY, 50))[:-3])

    assert not framing.close()


def test_an_informational_answer_comes_before_the_real_one() -> None:
    framing = Framing()
    framing.feed(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")

    assert framing.is_complete
    assert framing.status == 200


@pytest.mark.parametrize(
    "raw",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        HEAD + b"zz\r\n",
        HEAD + b"2\r\nabcdef",
        HEAD + b"1\r\na5\r\nbcdef",
        HEAD + b"-5\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000,
    ],
)
def test_bytes_that_are_not_http_are_marked_as_broken(raw: bytes) -> None:
    framing = Framing()

    assert framing.feed(raw)
    assert framing.broken is not None


def test_a_connection_with_bytes_after_the_end_is_not_reused() -> None:
    framing = Framing()

    assert framing.feed(HEAD + in_chunks(BODY, 50) + b"HTTP/1.1 408 Slow\r\n")
    assert framing.is_complete
    assert not framing.keeps_alive


def test_a_connection_that_the_server_closes_is_not_reused() -> None:
    framing = Framing()
    framing.feed(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")

    assert not framing.keeps_alive


def test_an_unfinished_event_is_ignored() -> None:
    assert list(split_events(b"data: a\n\ndata: b\n")) == [(8, b"a")]


def test_lines_may_end_in_any_of_three_ways() -> None:
    assert [data for _at, data in split_events(b"data: a\r\n\r\ndata: b\r\rdata:c\ndata: d\n\n")] == [
        b"a",
        b"b",
        b"c\nd",
    ]


def test_the_ids_of_the_prompt_are_not_output() -> None:
    choice = {"text": "", "prompt_token_ids": [1, 2, 3], "token_ids": [], "finish_reason": None}
    raw = HEAD + in_chunks(b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n", 5000)

    answer = read_answer(receive(raw, []))

    assert answer.token_events == []


def test_an_error_in_a_plain_200_is_an_error_inside_a_200() -> None:
    raw = b'HTTP/1.1 200 OK\r\nContent-Length: 17\r\n\r\n{"error": "dead"}'
    exchange = receive(raw, [])

    assert judge(exchange, read_answer(exchange), 2, {})[0] == "sse_error"


def test_a_page_that_is_not_a_stream_cannot_be_parsed() -> None:
    exchange = receive(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", [])

    assert judge(exchange, read_answer(exchange), 2, {}) == ("parse", "no event stream: hello")


def after_first_chunk() -> Framing:
    """An answer whose chunks are no longer walked through while they come."""
    framing = Framing()
    assert not framing.feed(HEAD + b"5\r\nhello\r\n"[:-2])
    assert not framing.feed(b"\r\n5\r\nwor")
    return framing


@pytest.mark.parametrize("last", [b"0\r\n\r\n", b"000\r\n\r\n", b"0;a=b\r\n\r\n", b"0 \r\n\r\n", b"0\r\nx: y\r\n\r\n"])
@pytest.mark.parametrize("cut", range(8))
def test_every_last_chunk_ends_an_answer_however_it_is_cut(last: bytes, cut: int) -> None:
    framing = after_first_chunk()
    end = b"ld\r\n" + last

    overs = [framing.feed(part) for part in (end[:cut], end[cut:]) if part]

    assert overs[-1]
    assert overs[:-1] in ([], [False])
    assert framing.settle()
    assert (framing.is_complete, framing.keeps_alive, framing.broken) == (True, True, None)


def test_an_end_followed_by_more_bytes_prevents_reuse_however_it_is_cut() -> None:
    framing = after_first_chunk()

    assert framing.feed(b"ld\r\n0\r\n\r\nHTTP/1.1 408 Slow\r\n")
    assert (framing.is_complete, framing.keeps_alive) == (True, False)


def test_content_that_looks_like_an_end_is_detected_after_the_load() -> None:
    exchange = Exchange(REQUEST)
    exchange.framing = after_first_chunk()

    taken_in = exchange.framing.feed(b"ld\r\nff\r\n\r\n0\r\n\r\n")
    exchange.settle()

    assert taken_in
    assert (exchange.framing.is_complete, exchange.failure) == (False, "truncated")


def test_a_broken_chunk_is_named_even_where_time_ran_out_first() -> None:
    exchange = Exchange(REQUEST)
    exchange.framing = after_first_chunk()

    assert not exchange.framing.feed(b"garbage" * 9)
    exchange.fail("timeout", "no complete answer within 1 s")
    exchange.settle()

    assert exchange.failure == "parse"
    assert str(exchange.failure_text).startswith("not a chunk size: b'rbage")


def test_a_count_of_all_tokens_on_a_last_event_without_text_is_not_counted_again() -> None:
    """As llama.cpp ends a stream: the usage is on the event with the finish reason, and not on one of its own."""
    words = [{"choices": [{"index": 0, "text": word, "finish_reason": None}]} for word in (" pupegewo", " tedoku")]
    last = {"choices": [{"index": 0, "text": "", "finish_reason": "length"}], "usage": USAGE}
    events = b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in (*words, last))

    answer = read_answer(receive(HEAD + in_chunks(events + b"data: [DONE]\n\n", 400), []))

    assert [event.tokens for event in answer.events] == [1, 1, 0, 0]
    assert (answer.tokens_by, answer.finish_reason) == ("events", "length")


def test_a_count_of_all_tokens_on_the_last_event_with_text_counts_no_earlier_one_again() -> None:
    words = [{"choices": [{"index": 0, "text": word, "finish_reason": None}]} for word in (" a", " b", " c")]
    last = words.pop() | {"usage": USAGE | {"completion_tokens": 3}}
    events = b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in (*words, last))

    answer = read_answer(receive(HEAD + in_chunks(events + b"data: [DONE]\n\n", 400), []))

    assert [event.tokens for event in answer.events] == [1, 1, 1, 0]
