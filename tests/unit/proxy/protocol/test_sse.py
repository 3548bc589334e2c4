"""Event streams, cut anywhere."""

from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from proxy.protocol.sse import COMMENT_PING, SSEEvent, SSEParser, SSETooLarge, encode_event

LINES = st.sampled_from(
    b"|data: x|data:y|data|data:|data:  z|: c|:|event: e|id: 7|id|id: \0|retry: 5|retry: x|unknown: 1|datax: 1| data: 1"
    b"|\xef\xbb\xbfdata: b|data: \xc3\xa9".split(b"|")
)
STREAMS = st.lists(st.tuples(LINES, st.sampled_from([b"\n", b"\r", b"\r\n"])), max_size=12).map(
    lambda lines: b"".join(line + end for line, end in lines)
) | st.binary(max_size=40)


def read(*chunks: bytes) -> list[SSEEvent]:
    parser = SSEParser()
    return [event for chunk in chunks for event in parser.feed(chunk)]


def data_of(*chunks: bytes) -> list[bytes]:
    return [event.data for event in read(*chunks)]


@settings(deadline=None)
@given(stream=STREAMS, cuts=st.lists(st.integers(0, 60)))
@example(stream=b"data: a\r\n\r\ndata: b\r\rdata: c\n\n", cuts=[8, 9, 10])
@example(stream=b"\xef\xbb\xbfdata: a\n\n", cuts=[1, 2])
def test_it_does_not_matter_where_a_stream_is_cut(stream: bytes, cuts: list[int]) -> None:
    whole, cut, single = SSEParser(), SSEParser(), SSEParser()
    edges = sorted({0, len(stream), *(min(each, len(stream)) for each in cuts)})
    events = [
        whole.feed(stream),
        [event for start, end in pairwise(edges) for event in cut.feed(stream[start:end])],
        [event for byte in stream for event in single.feed(bytes([byte]))],
    ]
    assert events[0] == events[1] == events[2]
    states = [(each.last_event_id, each.retry_ms, each.comments, each.close()) for each in (whole, cut, single)]
    assert states[0] == states[1] == states[2]


@settings(deadline=None)
@given(data=st.binary() | st.text().map(str.encode))
def test_what_we_write_is_read_back_as_one_event(data: bytes) -> None:
    same_line_ends = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    assert read(encode_event(data)) == [SSEEvent(same_line_ends)]


def test_nothing_in_the_data_can_begin_an_event_of_its_own() -> None:
    assert encode_event(b"a\r\n\r\nevent: evil\rid: 1") == (
        b"event: message\ndata: a\ndata: \ndata: event: evil\ndata: id: 1\n\n"
    )


def test_one_line_of_data_is_written_as_it_is() -> None:
    assert encode_event(b'{"a":1}') == b'event: message\ndata: {"a":1}\n\n'


def test_our_ping_is_a_comment() -> None:
    parser = SSEParser()
    assert parser.feed(COMMENT_PING * 3 + encode_event(b"x")) == [SSEEvent(b"x")]
    assert parser.comments == 3


def test_all_fields_of_an_event() -> None:
    stream = b"event: message\nid: 41\nretry: 500\ndata: {}\n\ndata: next\n\n"
    assert read(stream) == [SSEEvent(b"{}", "message", "41", 500), SSEEvent(b"next", "message", None, None)]


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_all_line_ends(end: bytes) -> None:
    stream = end.join([b"data: one", b"data: two", b"", b"event: other", b"data: three", b"", b""])
    assert read(stream) == [SSEEvent(b"one\ntwo"), SSEEvent(b"three", "other")]


def test_a_line_end_cut_in_two_is_one_line_end() -> None:
    assert data_of(b"data: a\r", b"\ndata: b\r", b"", b"\n\r", b"\n") == [b"a\nb"]


def test_a_line_end_in_one_chunk_takes_nothing_from_the_next() -> None:
    assert data_of(b"data: a\r", b"\n", b"\n", b"data: b\n\n") == [b"a", b"b"]
    assert data_of(b"\n", b"\ndata: a\n", b"\n") == [b"a"]


def test_other_separators_are_data() -> None:
    data = "a\x0bb\x0c\x1c\x85\u2028c".encode()
    assert data_of(b"data: %b\n\n" % data) == [data]


def test_one_space_behind_the_colon_is_dropped() -> None:
    assert data_of(b"data:a\n\ndata: a\n\ndata:  a\n\ndata:\ta\n\n") == [b"a", b"a", b" a", b"\ta"]


def test_colons_in_data_stay() -> None:
    assert data_of(b'data: {"a":"b: c"}\n\n') == [b'{"a":"b: c"}']


@pytest.mark.parametrize("empty", [b"data:", b"data: ", b"data"])
def test_a_priming_event_has_an_id_and_no_data(empty: bytes) -> None:
    parser = SSEParser()
    assert parser.feed(b"id: 9\n" + empty + b"\n\n") == [SSEEvent(b"", "message", "9", None)]
    assert parser.last_event_id == "9"


def test_an_id_or_retry_without_data_is_remembered_but_no_event() -> None:
    parser = SSEParser()
    assert parser.feed(b"id: 9\nevent: e\n\nretry: 250\n\ndata: x\n\n") == [SSEEvent(b"x")]
    assert (parser.last_event_id, parser.retry_ms) == ("9", 250)


def test_an_id_counts_once_its_event_has_ended() -> None:
    parser = SSEParser()
    parser.feed(b"id: 1\ndata: x\n\nid: 2\ndata: y\n")
    assert parser.last_event_id == "1"
    parser.feed(b"\n")
    assert parser.last_event_id == "2"


def test_an_id_with_nul_is_ignored() -> None:
    assert read(b"id: 1\nid: 2\0\ndata: x\n\n") == [SSEEvent(b"x", "message", "1", None)]


def test_a_retry_of_nine_digits_is_kept() -> None:
    parser = SSEParser()
    parser.feed(b"retry: 999999999\n")
    assert parser.retry_ms == 999_999_999


@pytest.mark.parametrize("value", [b"soon", b"-1", b"1.5", b"", b"\xd9\xa3", b"1" * 10, b"1" * 10_000])
def test_a_retry_that_is_no_sensible_number_is_ignored(value: bytes) -> None:
    parser = SSEParser()
    assert parser.feed(b"retry: %b\ndata: x\n\n" % value) == [SSEEvent(b"x")]
    assert parser.retry_ms is None


def test_text_that_is_not_utf8_does_no_harm() -> None:
    assert read(b"event: \xff\nid: \xfe\ndata: \xfd\n\n") == [SSEEvent(b"\xfd", "\ufffd", "\ufffd", None)]


def test_a_byte_order_mark_is_dropped_at_the_start_only() -> None:
    mark = b"\xef\xbb\xbf"
    assert data_of(mark + b"data: a\n\n" + mark + b"data: b\n\ndata: c\n\n") == [b"a", b"c"]
    assert data_of(b"\xef", b"\xbb", b"\xbfdata: a\n\n") == [b"a"]


def test_comments_are_counted_also_inside_an_event() -> None:
    parser = SSEParser()
    assert parser.feed(b": one\ndata: a\n:two\ndata: b\n\n:\n\n") == [SSEEvent(b"a\nb")]
    assert parser.comments == 3


@pytest.mark.parametrize("rest", [b"data: x", b"data: x\n", b"event: e\n", b"id: 1\n", b"da", b": com"])
def test_an_event_that_has_not_ended_is_forgotten(rest: bytes) -> None:
    parser = SSEParser()
    assert parser.feed(b"data: whole\n\n" + rest) == [SSEEvent(b"whole")]
    assert parser.close() is True
    assert parser.close() is False


@pytest.mark.parametrize("stream", [b"", b"data: x\n\n", b": ping\n\n", b"id: 1\ndata: x\r\r"])
def test_a_stream_that_ends_between_events_is_whole(stream: bytes) -> None:
    parser = SSEParser()
    parser.feed(stream)
    assert parser.close() is False


@pytest.mark.parametrize(
    "chunks",
    [
        [b"data: 1234567890\n"],
        [b"data: 1234\n", b"data: 56789\n"],
        [b"data: 1234567890"],
        [b"data: 1234567", b"89", b"0"],
        [b"data: 1234\n", b"data: 567", b"890"],
        [b": an endless com"],
        [b": an endless", b" co", b"mment"],
    ],
)
def test_an_event_may_not_grow_past_its_limit(chunks: list[bytes]) -> None:
    parser = SSEParser(max_event_bytes=9)
    *fitting, last = chunks
    assert [event for chunk in fitting for event in parser.feed(chunk)] == []
    with pytest.raises(SSETooLarge, match="larger than 9 bytes"):
        parser.feed(last)


@pytest.mark.parametrize("stream", [b"data: 123456789\n\n", b"data: 1234\ndata: 5678\n\n"])
def test_an_event_may_be_as_large_as_its_limit_however_it_is_cut(stream: bytes) -> None:
    for start in range(len(stream)):
        parser = SSEParser(max_event_bytes=9)
        assert len(parser.feed(stream[:start]) + parser.feed(stream[start:])) == 1


def test_the_limit_is_for_each_event_alone() -> None:
    parser = SSEParser(max_event_bytes=8)
    stream = b"data: 12345678\n\n: comment\n\n" * 100
    assert [event.data for event in parser.feed(stream)] == [b"12345678"] * 100
    assert [event for byte in stream for event in parser.feed(bytes([byte]))] == [SSEEvent(b"12345678")] * 100


@pytest.mark.parametrize(
    ("size", "chunk_bytes", "line"),
    [(1_000_000, 1, b"x"), (1_000_000, 1, b"x\ndata: "), (9_000_000, 4096, b"x\ndata: ")],
)
def test_a_large_event_in_small_pieces_is_read_to_its_end(size: int, chunk_bytes: int, line: bytes) -> None:
    """Reading that is not linear in the length would not come to an end here."""
    stream = b"data: " + line * (size // len(line)) + b"\n\n"
    chunks = [stream[start : start + chunk_bytes] for start in range(0, len(stream), chunk_bytes)]
    (event,) = read(*chunks)
    assert len(event.data) == len(line * (size // len(line))) - line.count(b"\n") * 6 * (size // len(line))


@pytest.mark.parametrize("cut", range(1, 12))
def test_more_empty_lines_than_one_mean_nothing(cut: int) -> None:
    stream = b"data: a\n\n\n\n\ndata: b\n\n\n\n"
    parser = SSEParser()
    events = parser.feed(stream[:cut]) + parser.feed(stream[cut:])
    assert [event.data for event in events] == [b"a", b"b"]
    after_cr = SSEParser()
    assert [each.data for each in after_cr.feed(b"data: a\r") + after_cr.feed(b"\n\n\n\ndata: b\n\n")] == [b"a", b"b"]


def test_what_follows_the_end_of_a_connection_begins_anew() -> None:
    parser = SSEParser()
    parser.feed(b"id: 1\nretry: 9\n\nid: 2\ndata: half\r")
    assert parser.close() is True
    assert parser.feed(b"\n\xef\xbb\xbfdata: no\n\n") == [], "a line end of its own, and no mark behind it"
    assert parser.close() is False
    assert parser.feed(b"\xef\xbb\xbfdata: x\n\n") == [SSEEvent(b"x")]
    assert (parser.last_event_id, parser.retry_ms) == ("1", 9)


def test_a_stream_has_a_bound_over_all_its_connections() -> None:
    parser = SSEParser(max_stream_bytes=20)
    parser.feed(b": comment\n")
    parser.close()
    parser.feed(b": comment\n")
    assert parser.fed_bytes == 20
    with pytest.raises(SSETooLarge, match="20 bytes"):
        parser.feed(b"\n")
