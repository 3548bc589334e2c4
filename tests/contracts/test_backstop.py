"""Every address is counted in a window; only probes and the well-known documents are exempt. Spec: §8 · D22, D148"""

from __future__ import annotations

import re
import uuid
from typing import Any

import pytest
from django.test import Client as Browser
from django.test import override_settings
from pytest_django.fixtures import Settings

from gateway.coordination.rules import Rule
from gateway.web.api_view import ApiView
from gateway.web.org_page import OrgPage
from tests.contracts.url_walk import Address, addresses
from tests.factories.cast import Cast
from tests.factories.fixed_window import hold_window

# A word for what was counted elsewhere would be a gap here: each of the others has to be counted by its own view.
EXEMPT = {"health", "ready"}
WELL_KNOWN = ".well-known/"
OWN_COUNT = {
    "oauth/authorize": "before anything is looked up",
    "oauth/token": "refusals for each address, grants for each client",
    "oauth/register": "60 a minute for each address",
    "oauth/device_authorization": "20 a minute",
    "oauth/revoke": "the backstop, with an answer for machines",
    "api/webhooks/stripe": "events of the payment provider, in a window of their own",
    "invite/<str:token>": "looking by the backstop, accepting 5 in 15 minutes",
    "v1/mcp": "calls, and everything else that comes with a bearer",
    "v1/mcp/": "as without the slash",
    "v1/<slug:vendor>/mcp": "calls, and everything else that comes with a bearer",
    "v1/<slug:vendor>/mcp/": "as without the slash",
    "v1/<slug:vendor>/cli": "calls",
    "v1/<slug:vendor>/cli/schema": "the backstop",
}
LIMIT = 1


def is_exempt(address: Address) -> bool:
    return address.route in EXEMPT or address.route.startswith(WELL_KNOWN)


def is_counted_first(address: Address) -> bool:
    """By the gates of its kind of view, or because the address says so."""
    is_gated = isinstance(address.view, type) and issubclass(address.view, ApiView | OrgPage)
    return is_gated or getattr(address.callback, "is_backstopped", False)


def counted_addresses() -> list[Address]:
    return [address for address in addresses() if is_counted_first(address)]


def uncounted(routes: list[Address]) -> list[str]:
    listed = [each for each in routes if is_exempt(each) or is_counted_first(each) or each.route in OWN_COUNT]
    return sorted({each.route for each in routes} - {each.route for each in listed})


def test_every_address_is_counted_or_listed() -> None:
    routes = list(addresses())
    assert len(routes) > 100
    assert uncounted(routes) == []
    assert set(OWN_COUNT) <= {address.route for address in routes}
    assert not [each.route for each in routes if each.route in OWN_COUNT and is_counted_first(each)]


def test_an_address_that_nobody_listed_is_noticed() -> None:
    def view() -> None: ...

    assert uncounted([Address("new/page", view, view)]) == ["new/page"]


@pytest.fixture(autouse=True)
def one_window(monkeypatch: pytest.MonkeyPatch) -> None:
    hold_window(monkeypatch, ends_in_s=900)  # a walk over all addresses, on a busy machine


@pytest.fixture
def narrow(settings: Settings) -> Rule:
    """A window of its own, which is soon full."""
    settings.BACKSTOP = Rule(f"backstop {uuid.uuid4()}", limit=LIMIT, window_s=60)
    return settings.BACKSTOP


class Values(dict[str, str]):
    """For each variable of a path something that its converter takes."""

    def __init__(self, cast: Cast) -> None:
        super().__init__(org_id=str(cast.org.id), user_id=str(cast.user("member").id))

    def __missing__(self, name: str) -> str:
        return str(uuid.uuid4()) if name.endswith("_id") else "acme"


def path_of(address: Address, cast: Cast) -> str:
    template = re.sub(r"\(\?P<(\w+)>[^)]*\)\$?", r"{\1}", address.template.replace("^", ""))
    return template.format_map(Values(cast))


def statuses(browser: Browser, path: str, **peer: Any) -> list[int]:
    return [browser.get(path, **peer).status_code for _ in range(LIMIT + 1)]


def test_a_stranger_is_counted_on_each_of_them(cast: Cast, narrow: Rule) -> None:
    """One more request than the window takes, each address from an address of its own."""
    for number, address in enumerate(counted_addresses()):
        peer = f"10.9.{number // 250}.{number % 250 + 1}"
        found = statuses(Browser(), path_of(address, cast), REMOTE_ADDR=peer)
        assert 429 not in found[:LIMIT], address.route
        assert found[LIMIT] == 429, address.route


def test_a_signed_in_person_is_counted_on_each_of_them(cast: Cast) -> None:
    """Also where the method is refused, or the role."""
    for who in ("owner", "stranger"):
        browser = cast.client(who)
        for address in counted_addresses():
            if address.route.startswith("oidc/") or has_own_limit(address):
                continue  # they sign in and out
            with override_settings(BACKSTOP=Rule(f"backstop {uuid.uuid4()}", limit=LIMIT, window_s=60)):
                found = statuses(browser, path_of(address, cast))
            assert 429 not in found[:LIMIT], address.route
            assert found[LIMIT] == 429, address.route


def has_own_limit(address: Address) -> bool:
    gates = getattr(address.view, "gates", {})
    return "GET" in gates and gates["GET"].limit is not None


def test_the_exempt_are_never_refused(db: None, narrow: Rule) -> None:
    exempt = [address for address in addresses() if is_exempt(address)]
    assert len(exempt) == 2 + 6
    for address in exempt:
        path = address.template.format(vendor="acme", rest="x")
        assert 429 not in statuses(Browser(), path)
