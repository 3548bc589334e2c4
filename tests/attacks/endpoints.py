"""Rows 21 to 24: addresses that an organization asks us to connect to."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import time_machine

from audit.models import AdminAuditEntry, LogDestination
from audit.shipping.claims import claim_due
from audit.shipping.delivery import deliver
from gateway.lib import clock, guarded_client
from tests.api.audit.shipping.stage import until_readable
from tests.api.audit.shipping.test_destinations_api import AZURE
from tests.attacks.refusals import refused
from tests.attacks.table import attack
from tests.attacks.world import ADMIN_ROW, World
from tests.factories.tenant import load_vendor

INSIDE = {
    "this computer": "https://127.0.0.1",
    "this computer in IPv6": "https://[::1]",
    "metadata in IPv6": "https://[::ffff:169.254.169.254]/latest",
    "hexadecimal": "https://0x7f.1",
    "one number": "https://2130706433",
    "octal": "https://0177.0.0.1",
    "10/8": "https://10.1.2.3",
    "172.16/12": "https://172.16.0.1",
    "192.168/16": "https://192.168.1.1",
    "100.64/10": "https://100.64.0.1",
    "link-local": "https://[fe80::1]",
    "unique local": "https://[fd12::1]",
    "metadata": "https://169.254.169.254/latest/meta-data",
    "metadata of another cloud": "https://100.100.100.200",
    "nowhere": "https://0.0.0.0",
    "other digits": "https://\u2460\u2461\u2466.0.0.1",
}


OF_AN_ATTEMPT = (ADMIN_ROW, "audit.LogDestination", "audit.DeliveryHour", "audit.SentHour")


def body_of(url: str, platform: str = "webhook", **config: str) -> dict[str, Any]:
    return {"label": "SIEM", "platform": platform, "endpointUrl": url, "config": config}


def refused_as_endpoint(world: World, body: dict[str, Any]) -> None:
    answer = world.send("POST", f"{world.org}/log-shipping", who="admin", body=body)
    assert set(refused(answer, 400, "endpoint_not_allowed")["fields"]) == {"endpointUrl"}


@attack(21, INSIDE)
def a_destination_inside(world: World, url: str) -> None:
    world.settings.ALLOW_PRIVATE_ENDPOINTS = False
    with world.watched():
        refused_as_endpoint(world, body_of(url))


@attack(21, {name: url for name, url in INSIDE.items() if name not in {"nowhere", "other digits"}})
def a_vendor_inside(world: World, url: str) -> None:
    """A catalog's address may hold a part that the customer chooses; here it is an operator's mistake."""
    world.settings.ALLOW_PRIVATE_ENDPOINTS = False
    load_vendor(f"{url.removesuffix('/latest').removesuffix('/meta-data')}/mcp", slug="inside")
    with world.watched():
        answer = world.send("POST", f"{world.org}/credentials/inside", who="admin", body={"apiKey": "any"})
        refused(answer, 400, "endpoint_not_allowed")


class Listening:
    """Counts the connections to a port of this computer, and redirects who speaks HTTP."""

    def __init__(self, location: str) -> None:
        self.connections, self.paths = 0, list[str]()
        noted = self

        class Handler(BaseHTTPRequestHandler):
            def setup(self) -> None:
                noted.connections += 1
                super().setup()

            def do_POST(self) -> None:
                noted.paths.append(self.path)
                self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(302)
                self.send_header("Location", location)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Says nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = int(self.server.server_address[1])


@contextlib.contextmanager
def listening(location: str = "http://127.0.0.1:9/") -> Iterator[Listening]:
    made = Listening(location)
    thread = Thread(target=made.server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield made
    finally:
        made.server.shutdown()
        thread.join(10)
        made.server.server_close()


def delivered() -> int:
    """The records that a round of deliveries handled, with the real client."""
    until_readable()
    return sum(deliver(pk, claim) for pk, claim in claim_due())


def outage_is_audited(world: World) -> None:
    """Failed attempts for more than five minutes are in the organization's log."""
    with time_machine.travel(clock.now() + timedelta(minutes=6), tick=False):
        assert delivered() == 0
    row = LogDestination.objects.get()
    assert (row.status, row.delivered) == ("failing", 0)
    assert AdminAuditEntry.objects.filter(
        org_id=world.cast.org.id, event_type="log_shipping.delivery_failed", target_id=str(row.pk)
    ).exists()


@attack(22)
def a_name_that_leads_inside_later(world: World) -> None:
    world.settings.ALLOW_PRIVATE_ENDPOINTS = False
    with listening() as inside:
        url = f"https://rebound.example:{inside.port}/hook"
        made = world.send("POST", f"{world.org}/log-shipping", who="admin", body=body_of(url))
        assert made.status_code == 201, made.text
        world.monkeypatch.setattr(guarded_client, "lookup", lambda host, port: ["127.0.0.1"])
        with world.watched(*OF_AN_ATTEMPT):
            assert delivered() == 0
            outage_is_audited(world)
        assert inside.connections == 0
        assert "not allowed" in str(LogDestination.objects.get().last_error)


@attack(23)
def a_target_that_redirects_inside(world: World) -> None:
    """Where private addresses are allowed, the metadata service is still no place to be sent to."""
    inside = socket.create_server(("127.0.0.1", 0))
    inside.settimeout(0.05)
    where = f"http://127.0.0.1:{inside.getsockname()[1]}/latest/meta-data"
    with inside, listening(where) as target:
        url = f"http://127.0.0.1:{target.port}/hook"
        made = world.send("POST", f"{world.org}/log-shipping", who="admin", body=body_of(url))
        assert made.status_code == 201, made.text
        with world.watched(*OF_AN_ATTEMPT):
            assert delivered() == 0
            outage_is_audited(world)
        assert set(target.paths) == {"/hook"}
        tried = world.send("POST", f"{world.org}/log-shipping/{made.json()['id']}/test", who="admin")
        assert (tried.status_code, tried.json()["accepted"]) == (200, False)
        with contextlib.suppress(TimeoutError):
            inside.accept()
            raise AssertionError("the redirect was followed")


@attack(
    24,
    {
        "file": "file:///etc/passwd",
        "gopher": "gopher://logs.example.com/",
        "plain HTTP": "http://logs.example.com",
        "user": "https://user:pass@logs.example.com",
        "empty user": "https://@logs.example.com",
        "port 22": "https://logs.example.com:22",
        "no port": "https://logs.example.com:99999",
        "trailing dot": "https://logs.example.com.",
        "fragment": "https://logs.example.com/#a",
        "no host": "https:///hook",
        "a space": "https://logs example.com",
        "ourselves": "http://testserver/v1/mcp",
    },
)
def an_address_of_a_bad_form(world: World, url: str) -> None:
    world.settings.ALLOW_PRIVATE_ENDPOINTS = False
    with world.watched():
        refused_as_endpoint(world, body_of(url))


@attack(
    24,
    {
        "another cloud": ("platform_g", "https://ingest.cloud.example.evil.com", AZURE),
        "the domain inside": ("platform_g", "https://ingest.monitor.azure.com.evil.example", AZURE),
        "a longer name": ("platform_g", "https://evilingest.monitor.azure.com", AZURE),
        "another host than the preset": ("platform_d", "https://logs.evil.example", {"token": "a-better-token"}),
    },
)
def a_host_of_another_platform(world: World, asked: tuple[str, str, dict[str, str]]) -> None:
    platform, url, config = asked
    with world.watched():
        refused_as_endpoint(world, body_of(url, platform, **config))
