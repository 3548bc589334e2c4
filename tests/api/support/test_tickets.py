"""Tickets as support gets them, each answered from the console alone: a search, then links of the pages."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import unescape
from urllib.parse import urljoin

import pytest
from django.test import Client as Browser

from audit.models import RequestAuditEntry
from gateway.web.sessions import SessionStore, key_of
from orgs.services.browser_sessions import note_use
from tests.api.support.conftest import Scene
from tests.factories.cast import signed_in_session

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0"
_LINK = re.compile(r'<a [^>]*href="([^"]+)"[^>]*>(.*?)</a>', re.DOTALL)
_TAG = re.compile(r"<[^>]+>")


@dataclass(frozen=True)
class Ticket:
    """`search`: what the ticket names; `path`: texts of the links to follow; `answer`: what the last page then says.

    Words in braces are of the scene.
    """

    question: str
    search: str
    path: tuple[str, ...]
    answer: tuple[str, ...]


TICKETS = [
    Ticket("Who made the call req-timeout?", "req-timeout", ("req-timeout",), ("Caller Member",)),
    Ticket("Why was req-denied refused?", "req-denied", ("req-denied",), ("no_server_access", "Vendor access failed")),
    Ticket(
        "At whose end is the fault of req-timeout?",
        "req-timeout",
        ("req-timeout",),
        ("The fault lies with the vendor.",),
    ),
    Ticket(
        "Our calls to Shut fail: is it the vendor or the credential?",
        "Acme",
        ("Acme",),
        ("The credential: the vendor rejects it.",),
    ),
    Ticket(
        "Since when do calls to Shut fail?", "Acme", ("Acme",), ('"Failing since"><time datetime="{rejected_since}"',)
    ),
    Ticket("Is Slow down?", "Acme", ("Acme",), ("timed out after 5 s", "The vendor: it does not answer")),
    Ticket("Since when is Slow down?", "Acme", ("Acme",), ('since"><time datetime="{down_since}"',)),
    Ticket(
        "Which request failed last with the rejected key?", "Acme", ("Acme", "req-rejected-1"), ("Caller night bot",)
    ),
    Ticket("Whose key is this, and was it used?", "{prefix}", ("{prefix}",), ("night bot", "{prefix} never")),
    Ticket("When does our agent end?", "{client_id}", ("night bot",), ("{expires}",)),
    Ticket("Who removed Admin?", "{org_id}", ("Acme",), ("Owner removed Admin",)),
    Ticket("What changed lately?", "Acme", ("Acme",), ("Owner added the log destination SIEM",)),
    Ticket("What do we owe?", "Acme", ("Acme",), ("An invoice is owed",)),
    Ticket(
        "Why does Member not see Shut?",
        "member@example.com",
        ("Member", "See as Member in Acme"),
        ("Shut no",),
    ),
    Ticket("May the agent call lookup at Fake?", "{client_id}", ("night bot", "See as night bot"), ("fake_lookup",)),
    Ticket("Where is Member signed in?", "member@example.com", ("Member",), ("Firefox on Linux",)),
    Ticket("Was our log delivered?", "Acme", ("Acme",), ("failing", "17 records", "The platform answered HTTP 403")),
    Ticket("Was the invitation of new@example.com used?", "Acme", ("Acme",), ("new@example.com 0 of 1 used",)),
    Ticket("Has support looked at our organization?", "Acme", ("Acme",), ("viewed the organization for support",)),
]


def words_of(page: str) -> str:
    """The text of the page on one line."""
    return " ".join(unescape(_TAG.sub(" ", page)).split())


def linked(page: str, text: str) -> str:
    """The address of the first link whose text begins with these words."""
    for address, inside in _LINK.findall(page):
        if words_of(inside).startswith(text):
            return unescape(address)
    raise AssertionError(f"no link says {text!r}")


@pytest.fixture
def terms(scene: Scene) -> dict[str, str]:
    member = scene.cast.user("member")
    key = key_of(SessionStore(signed_in_session(member)))
    note_use(user_id=member.id, key=key, user_agent=FIREFOX)
    rejected = RequestAuditEntry.objects.get(request_id="req-rejected-30")
    return {
        "org_id": str(scene.cast.org.id),
        "client_id": scene.tenant.client.client_id,
        "prefix": scene.tenant.agent_key.rpartition("_")[0],
        "rejected_since": f"{rejected.timestamp:%Y-%m-%dT%H:%M:%S}Z",
        "down_since": f"{scene.down_since:%Y-%m-%dT%H:%M:%S}Z",
        "expires": f"{scene.tenant.client.expires_at:%Y-%m-%dT%H:%M:%S}Z",
    }


@pytest.mark.parametrize("ticket", TICKETS, ids=lambda ticket: ticket.question)
def test_a_ticket_is_answered(scene: Scene, staff: Browser, terms: dict[str, str], ticket: Ticket) -> None:
    address = "/admin/?q=" + ticket.search.format(**terms).replace("@", "%40")
    page = staff.get(address).content.decode()
    for step in ticket.path:
        address = urljoin(address, linked(page, step.format(**terms)))
        answer = staff.get(address)
        assert answer.status_code == 200, address
        page = answer.content.decode()
    for text in ticket.answer:
        wanted = text.format(**terms)
        assert wanted in words_of(page) or wanted in page, (ticket.question, wanted)
    assert [each for each in scene.secrets if each in page] == []


def test_there_are_tickets_enough() -> None:
    assert len({ticket.question for ticket in TICKETS}) >= 12
