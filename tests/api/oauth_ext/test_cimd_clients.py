"""Clients that bring a document: fetched with care, kept for a while, and no way into our network."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import httpcore
import pytest
from asgiref.sync import sync_to_async
from pytest_django.fixtures import Settings

from gateway.coordination.rules import Rule
from gateway.lib import clock, guarded_client
from oauth_ext import cimd_fetch, cimd_threads
from oauth_ext.cimd_fetch import Fetched, FetchFailed, fetch_document
from oauth_ext.models import Client
from oauth_ext.services import cimd_clients
from oauth_ext.services.cimd_clients import DocumentUnusable, cimd_client
from tests.api.oauth_ext.cimd_server import DocumentServer, running

PUBLIC = "93.184.216.34"


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DocumentServer]:
    with running(tmp_path_factory.mktemp("documents")) as server:
        yield server


@pytest.fixture
def server(started: DocumentServer, monkeypatch: pytest.MonkeyPatch, settings: Settings) -> DocumentServer:
    """The server, trusted and found under its name; windows of its own for the limits."""
    started.answers.clear()
    started.asked.clear()
    started.headers.clear()
    context, connect = started.trust(), httpcore.SyncBackend.connect_tcp
    monkeypatch.setattr(guarded_client, "lookup", lambda host, port: [PUBLIC])
    monkeypatch.setattr(guarded_client, "_tls", lambda: context)
    monkeypatch.setattr(
        httpcore.SyncBackend, "connect_tcp", lambda self, host, *more: connect(self, "127.0.0.1", *more)
    )
    return started


@pytest.fixture(autouse=True)
def own_window(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """A window that no other test has counted in."""
    name = f"{request.node.name} {clock.now().timestamp()}"
    monkeypatch.setattr(cimd_clients, "FETCHES_OF_ONE", Rule(f"one {name}", limit=3, window_s=60))


def serve(server: DocumentServer, path: str = "/client.json", **changes: Any) -> str:
    """Serve a complete document; `changes` replace members. Returns its address."""
    url = server.url(path)
    body = {"client_id": url, "client_name": "Documented", "redirect_uris": ["https://app.example/cb"], **changes}
    server.answers[path] = {"body": json.dumps(body).encode()}
    return url


def test_a_document_is_fetched_without_cookies_or_redirects(server: DocumentServer) -> None:
    url = serve(server)
    server.answers["/client.json"]["headers"] = {"Cache-Control": "max-age=600", "Set-Cookie": "a=b"}
    fetched = fetch_document(url)
    assert isinstance(fetched.document, dict)
    assert (fetched.document["client_id"], fetched.cache_control) == (url, "max-age=600")
    fetch_document(url)
    assert len(server.headers) == 2
    for sent in server.headers:
        assert not {"Cookie", "Authorization", "Referer"} & set(sent)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"status": 404}, "status 404"),
        ({"status": 500}, "status 500"),
        ({"status": 302, "headers": {"Location": "https://app.example/other.json"}}, "status 302"),
        ({"headers": {"Content-Type": "text/html"}, "body": b"<html>"}, "not JSON"),
        ({"headers": {"Content-Encoding": "gzip"}, "body": b"\x1f\x8b"}, "not JSON"),
        ({"body": b"{"}, "not JSON"),
        ({"body": b'{"a": 1, "a": 2}'}, "not JSON"),
        ({"body": b" " * 65_537}, "too large"),
        ({"wait_s": 30}, "in time"),
        ({"pause_s": 30}, "in time"),
    ],
)
def test_answers_that_will_not_do(
    server: DocumentServer, monkeypatch: pytest.MonkeyPatch, answer: dict[str, Any], reason: str
) -> None:
    if reason == "in time":
        monkeypatch.setattr(cimd_fetch, "TIMEOUT_S", 2.0)
    url = serve(server)
    server.answers["/client.json"].update(answer)
    with pytest.raises(FetchFailed, match=reason):
        fetch_document(url)
    assert server.asked == ["/client.json"]


def test_a_certificate_nobody_trusts(server: DocumentServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guarded_client, "_tls", ssl.create_default_context)
    with pytest.raises(FetchFailed, match="cannot be reached"):
        fetch_document(serve(server))
    assert server.asked == []


@pytest.mark.parametrize(
    "address",
    [
        "https://127.0.0.1/client.json",
        "https://10.0.0.1/client.json",
        "https://169.254.169.254/latest/meta-data",
        "https://[::1]/client.json",
        "https://[::ffff:10.0.0.1]/client.json",
        "https://0x7f.1/client.json",
        "https://2130706433/client.json",
        "https://localhost./client.json",
        "http://app.example/client.json",
        "file:///etc/passwd",
    ],
)
def test_addresses_that_are_refused_unresolved(address: str) -> None:
    with pytest.raises(FetchFailed, match="not allowed"):
        fetch_document(address)


@pytest.mark.parametrize("where", ["127.0.0.1", "10.1.2.3", "169.254.169.254", "::1", "fd00::1", "100.64.0.1"])
def test_names_that_lead_inside(monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    monkeypatch.setattr(guarded_client, "lookup", lambda host, port: [where])
    with pytest.raises(FetchFailed, match="not allowed"):
        fetch_document("https://rebound.example/client.json")


def test_the_client_is_stored_and_not_fetched_again(db: None, server: DocumentServer) -> None:
    url = serve(server)
    client = cimd_client(client_id=url, address="192.0.2.1")
    assert (client.client_id, client.name, client.redirect_uris) == (url, "Documented", "https://app.example/cb")
    assert client.client_type == Client.CLIENT_PUBLIC
    assert client.registered_itself
    assert cimd_client(client_id=url, address="192.0.2.1") == client
    assert server.asked == ["/client.json"]


def test_an_old_document_is_fetched_again(db: None, server: DocumentServer) -> None:
    url = serve(server)
    client = cimd_client(client_id=url, address="192.0.2.1")
    Client.objects.filter(pk=client.pk).update(cimd_expires_at=clock.now() - timedelta(seconds=1))
    serve(server, client_name="Renamed", redirect_uris=["https://app.example/new"])
    renamed = cimd_client(client_id=url, address="192.0.2.1")
    assert (renamed.pk, renamed.name, renamed.redirect_uris) == (client.pk, "Renamed", "https://app.example/new")
    Client.objects.filter(pk=client.pk).update(cimd_expires_at=clock.now() - timedelta(seconds=1))
    server.answers["/client.json"] = {"status": 500}
    assert cimd_client(client_id=url, address="192.0.2.1").name == "Renamed"
    assert len(server.asked) == 3


def test_a_document_about_somebody_else(db: None, server: DocumentServer) -> None:
    url = serve(server, client_id="https://other.example/client.json")
    with pytest.raises(DocumentUnusable, match="differs from its address"):
        cimd_client(client_id=url, address="192.0.2.1")
    assert not Client.objects.exists()


def test_an_unusable_document_is_not_asked_for_all_the_time(db: None, server: DocumentServer) -> None:
    url = server.url("/missing.json")
    for _ in range(5):
        with pytest.raises(DocumentUnusable):
            cimd_client(client_id=url, address="192.0.2.1")
    assert len(server.asked) == 3


def test_one_address_may_bring_so_many_a_minute(db: None, server: DocumentServer, settings: Settings) -> None:
    settings.CLIENT_REGISTRATIONS = Rule(f"few {clock.now().timestamp()}", limit=2, window_s=60)
    urls = [serve(server, f"/{number}.json") for number in range(3)]
    for url in urls[:2]:
        cimd_client(client_id=url, address="192.0.2.1")
    with pytest.raises(DocumentUnusable, match="too often"):
        cimd_client(client_id=urls[2], address="192.0.2.1")
    cimd_client(client_id=urls[2], address="192.0.2.2")


def test_a_document_takes_over_no_other_kind_of_client(db: None, server: DocumentServer, public_client: Client) -> None:
    url = serve(server)
    Client.objects.filter(pk=public_client.pk).update(client_id=url)
    with pytest.raises(DocumentUnusable):
        cimd_client(client_id=url, address="192.0.2.1")
    assert server.asked == []


def test_a_full_table_takes_no_more(db: None, server: DocumentServer, settings: Settings) -> None:
    settings.REGISTERED_CLIENTS = 1
    cimd_client(client_id=serve(server, "/1.json"), address="192.0.2.1")
    with pytest.raises(DocumentUnusable, match="No more clients"):
        cimd_client(client_id=serve(server, "/2.json"), address="192.0.2.1")


def test_we_do_not_ask_ourselves(db: None, server: DocumentServer, settings: Settings) -> None:
    settings.BASE_URL = server.url("")
    with pytest.raises(DocumentUnusable):
        cimd_client(client_id=serve(server), address="192.0.2.1")
    assert server.asked == []


def expire(client: Client, *, ago: timedelta = timedelta(seconds=1)) -> None:
    """Its document's time is over for so long."""
    Client.objects.filter(pk=client.pk).update(cimd_expires_at=clock.now() - ago)


def test_what_a_document_said_last_does_not_hold_for_ever(
    db: None, server: DocumentServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = Rule(f"stale {clock.now().timestamp()}", limit=10, window_s=60)
    monkeypatch.setattr(cimd_clients, "FETCHES_OF_ONE", wide)
    url = serve(server)
    client = cimd_client(client_id=url, address="192.0.2.1")
    server.answers["/client.json"] = {"status": 404}
    expire(client, ago=cimd_clients.STALE_FOR - timedelta(minutes=1))
    assert cimd_client(client_id=url, address="192.0.2.1") == client
    expire(client, ago=cimd_clients.STALE_FOR)
    with pytest.raises(DocumentUnusable, match="status 404"):
        cimd_client(client_id=url, address="192.0.2.1")
    serve(server)
    assert cimd_client(client_id=url, address="192.0.2.1") == client


def test_whoever_asks_too_often_uses_up_nobody_elses_window(
    db: None, server: DocumentServer, settings: Settings
) -> None:
    settings.CLIENT_REGISTRATIONS = Rule(f"few {clock.now().timestamp()}", limit=1, window_s=60)
    cimd_client(client_id=serve(server, "/other.json"), address="192.0.2.1")
    url = serve(server)
    for _ in range(4):
        with pytest.raises(DocumentUnusable, match="too often"):
            cimd_client(client_id=url, address="192.0.2.1")
    cimd_client(client_id=url, address="192.0.2.2")


class Stuck:
    """A fetch that nobody can give up, like the resolution of a name whose server does not answer."""

    def __init__(self) -> None:
        self.may_end, self.begun = threading.Event(), threading.Semaphore(0)
        self.threads: set[str] = set()

    def __call__(self, address: str) -> Fetched:
        self.threads.add(threading.current_thread().name)
        self.begun.release()
        self.may_end.wait(30)
        raise FetchFailed("The client document cannot be fetched.")


@pytest.fixture
def stuck(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stuck]:
    """Every fetch hangs until the test ends."""
    made = Stuck()
    monkeypatch.setattr(cimd_clients, "fetch_document", made)
    monkeypatch.setattr(cimd_threads, "PATIENCE_S", 0.05)
    monkeypatch.setattr(cimd_threads, "_succeeded", OrderedDict())
    yield made
    made.may_end.set()
    for _ in range(500):
        if not cimd_threads._busy:
            return
        time.sleep(0.01)
    raise AssertionError("a fetch has not ended")


def test_a_fetch_that_hangs_holds_up_no_call_and_keeps_its_place(db: None, stuck: Stuck) -> None:
    def refusal(number: int, address: str) -> str:
        with pytest.raises(DocumentUnusable) as caught:
            cimd_client(client_id=f"https://app.example/{number}.json", address=address)
        return caught.value.message

    most = cimd_threads.THREADS_OF_ONE_ADDRESS
    assert {refusal(number, "192.0.2.1") for number in range(most)} == {"The client document did not arrive in time."}
    assert "Too many clients" in refusal(most, "192.0.2.1")
    others = range(10, 10 + cimd_threads.THREADS - cimd_threads.THREADS_KEPT - most)
    assert {refusal(number, f"192.0.2.{number}") for number in others} == {
        "The client document did not arrive in time."
    }
    assert "Too many clients" in refusal(99, "192.0.2.99")
    # The last places are for those who brought a document before, one for each.
    known = [f"198.51.100.{number}" for number in range(cimd_threads.THREADS_KEPT)]
    for address in (*known, "192.0.2.1"):
        cimd_threads._remember(address)
    assert "Too many clients" in refusal(100, "192.0.2.1")
    assert {refusal(200 + number, address) for number, address in enumerate(known)} == {
        "The client document did not arrive in time."
    }
    assert "Too many clients" in refusal(300, known[0])
    assert all(stuck.begun.acquire(timeout=20) for _ in range(cimd_threads.THREADS))
    assert len(stuck.threads) == cimd_threads.THREADS
    assert all(name.startswith("client-document") for name in stuck.threads)


async def test_a_fetch_does_not_run_on_the_loop_that_serves_calls(
    stuck: Stuck, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cimd_threads, "PATIENCE_S", 20.0)
    stuck.may_end.set()

    def fetched() -> None:
        with pytest.raises(FetchFailed):
            cimd_threads.run(lambda: stuck("https://app.example/client.json"), asked_by="192.0.2.1")

    await sync_to_async(fetched)()
    assert threading.current_thread().name not in stuck.threads
