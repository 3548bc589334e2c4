"""A receiver plays the faults it is told to, checks every request all the same, and records what it keeps."""

from __future__ import annotations

import gzip
import http.client
import ipaddress
import math
import socket
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509

from tests.fakes.authority import Authority
from tests.receivers import Fault, Receiver
from tests.receivers.paths import values_at
from tests.unit.receivers.talking import Answer, as_json, send

pytestmark = pytest.mark.one_back_end
HEADERS = {"Authorization": "Bearer t", "Content-Type": "application/json"}
AT = "2026-11-01T10:00:00Z"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver("better_stack", token="t") as started:
        yield started


def deliver(receiver: Receiver, *ids: str, **changes: float) -> Answer:
    return send(receiver, "/", as_json([{"id": each, "dt": AT} for each in ids]), HEADERS, **changes)


def test_events_are_recorded_in_order_and_again_when_they_come_again(receiver: Receiver) -> None:
    assert deliver(receiver, "a", "b").status == 202
    assert deliver(receiver, "b", "c").status == 202
    assert receiver.ids("id") == ["a", "b", "b", "c"]
    assert [request.path for request in receiver.requests] == ["/", "/"]
    assert receiver.violations == []


@pytest.mark.parametrize(
    ("retry_after", "header"),
    [(None, None), (7, "7"), (datetime(2026, 11, 1, 10, tzinfo=UTC), "Sun, 01 Nov 2026 10:00:00 GMT")],
)
def test_a_status_with_and_without_retry_after(receiver: Receiver, retry_after: object, header: str | None) -> None:
    receiver.fail_next(Fault.answers(429, retry_after=retry_after))
    answer = deliver(receiver, "a")
    assert (answer.status, answer.headers["Retry-After"]) == (429, header)
    assert receiver.events == []
    assert deliver(receiver, "a").status == 202


def test_a_fault_lasts_as_often_as_it_was_planned_or_until_it_is_healed(receiver: Receiver) -> None:
    receiver.fail_next(Fault.answers(503), times=2)
    assert [deliver(receiver, "a").status for _ in range(3)] == [503, 503, 202]
    receiver.fail_next(Fault.answers(500), math.inf)
    assert [deliver(receiver, "b").status for _ in range(3)] == [500, 500, 500]
    receiver.heal()
    assert deliver(receiver, "b").status == 202


def test_a_fault_for_a_path_leaves_others_alone(receiver: Receiver) -> None:
    receiver.fail_next(Fault.answers(503), on="/oauth2/")
    assert deliver(receiver, "a").status == 202


def test_garbage_and_an_empty_answer(receiver: Receiver) -> None:
    receiver.fail_next(Fault.garbage())
    receiver.fail_next(Fault.empty())
    garbage, empty = deliver(receiver, "a"), deliver(receiver, "a")
    assert (garbage.status, garbage.body) == (200, b"<html>\x00\xff not what was asked")
    assert (empty.status, empty.body) == (200, b"")
    assert receiver.events == []


def test_an_answer_lost_after_the_events_were_kept(receiver: Receiver) -> None:
    receiver.fail_next(Fault.closes())
    receiver.fail_next(Fault.closes().but_keeps())
    for _ in range(2):
        with pytest.raises(http.client.RemoteDisconnected):
            deliver(receiver, "a")
    deliver(receiver, "a")
    assert receiver.ids("id") == ["a", "a"]


def test_an_answer_that_is_not_http(receiver: Receiver) -> None:
    receiver.fail_next(Fault.not_http())
    with pytest.raises(http.client.BadStatusLine):
        deliver(receiver, "a")


def test_an_answer_that_never_comes_and_one_that_comes_late(receiver: Receiver) -> None:
    receiver.fail_next(Fault.never_answers())
    with pytest.raises(TimeoutError):
        deliver(receiver, "a", timeout_s=0.2)
    receiver.fail_next(Fault.slow(0.2))
    began_s = time.monotonic()
    assert deliver(receiver, "b").status == 202
    assert time.monotonic() - began_s >= 0.2
    assert receiver.ids("id") == ["b"]


def test_a_redirect_is_a_violation_only_when_it_is_followed(receiver: Receiver) -> None:
    receiver.fail_next(Fault.redirects())
    location = deliver(receiver, "a").headers["Location"]
    assert (location.startswith(receiver.url), receiver.violations) == (True, [])
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(location)
    assert receiver.violations == ["a redirect was followed"]


def test_a_request_is_checked_whatever_fault_it_meets(receiver: Receiver) -> None:
    receiver.fail_next(Fault.answers(503))
    assert send(receiver, "/", b'[{"dt": "yesterday"}]', HEADERS).status == 503
    assert receiver.violations == ["event 0: dt is no time: 'yesterday'"]


def test_events_that_the_platform_always_refuses(receiver: Receiver) -> None:
    receiver.poison = lambda event: event["id"] == "bad"
    assert [deliver(receiver, *ids).status for ids in (("a", "bad"), ("bad",), ("a",))] == [406, 406, 202]
    assert receiver.ids("id") == ["a"]


def test_a_platform_without_partial_failures_cannot_be_told_to_have_one(receiver: Receiver) -> None:
    with pytest.raises(ValueError, match="takes a batch or refuses it"):
        receiver.fail_next(Fault.refuses(1))


def test_gzip_is_read_and_other_bodies_are_breaches(receiver: Receiver) -> None:
    body = as_json([{"dt": AT}])
    assert send(receiver, "/", gzip.compress(body), {**HEADERS, "Content-Encoding": "gzip"}).status == 202
    assert receiver.requests[0].body == body
    assert receiver.violations == []
    for sent, coding in ((body, "gzip"), (gzip.compress(body)[:-4], "gzip"), (body, "br")):
        send(receiver, "/", sent, {**HEADERS, "Content-Encoding": coding})
    found = " ".join(receiver.violations)
    assert "the body is not gzip" in found
    assert "the gzip stream has no end" in found
    assert "Content-Encoding br" in found


def test_a_body_in_chunks_is_a_breach(receiver: Receiver) -> None:
    with socket.create_connection(("127.0.0.1", int(receiver.url.rsplit(":", 1)[1]))) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
        connection.recv(100)
    assert receiver.violations[0] == "a body without one Content-Length"


def test_a_fault_of_the_receiver_itself_is_a_violation(receiver: Receiver) -> None:
    receiver.poison = lambda event: event["missing"]
    with pytest.raises(http.client.RemoteDisconnected):
        deliver(receiver, "a")
    assert receiver.violations == ["the receiver failed: KeyError('missing')"]


def test_values_deep_in_events() -> None:
    text = '{"events": [{"id": 1}, {"id": 2}]}'
    for event, found in (({"line": text}, [1, 2]), ({"line": "no JSON"}, []), ({"line": {"events": []}}, [])):
        assert values_at(event, ("line", "events", "id")) == found


def test_tls_and_a_client_that_does_not_trust_the_certificate(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    context = authority.server(x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
    with Receiver("better_stack", tls=context, token="t") as receiver:
        with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
            urllib.request.urlopen(f"{receiver.url}/", context=ssl.create_default_context())
        with pytest.raises(urllib.error.HTTPError, match="405"):
            urllib.request.urlopen(f"{receiver.url}/", context=authority.trusting())
        assert receiver.violations == ["GET instead of POST"]
