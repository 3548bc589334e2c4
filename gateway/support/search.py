"""The console's first page: one field, which knows the form of what is typed and asks along an index."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from audit.selectors import request_subquery
from gateway.lib import management_token_format
from gateway.lib.ids import parse_id
from gateway.lib.request_ids import is_request_id
from gateway.support.page import SupportPage
from gateway.web.search import search_words
from oauth_ext import agent_key_format
from oauth_ext.models import AgentKey, Client
from orgs.models import ManagementToken, Organization, User

SHOWN = 20  # of each kind
_KEY = re.compile(rf"{agent_key_format.MARK}[0-9A-Za-z]{{1,{agent_key_format.PUBLIC_CHARACTERS}}}")
_TOKEN = re.compile(rf"{management_token_format.MARK}[0-9A-Za-z]{{1,{management_token_format.PUBLIC_CHARACTERS}}}")
APP = "App"
_CLIENT = re.compile(r"(svc|mcpc)_[0-9A-Za-z_-]{1,250}|https://\S+")


@dataclass(frozen=True, slots=True)
class Hit:
    """Of `kind`, with its `name`, a `note` and where its page is."""

    kind: str
    name: str
    note: str
    url: str


class SearchPage(SupportPage):
    """GET /admin/?q=. A whole agent key or management token is cut to its prefix and leaves the address."""

    def get(self, request: HttpRequest) -> HttpResponse:
        words = search_words(request, "q")
        if whole := agent_key_format.parse(words) or management_token_format.parse(words):
            return redirect(f"{request.path}?q={whole.prefix}")
        context = {"asked": words, "hits": found(words, may_act=self.may_act) if words else []}
        return self.page("support/search.html", "Support", context)


def found(words: str, *, may_act: bool = False) -> list[Hit]:
    """At most SHOWN of each kind, in at most four statements. `may_act`: an app leads to its action."""
    hits = [hit for search in _searches(words) for hit in search(words)]
    return [replace(hit, url="") if hit.kind == APP and not may_act else hit for hit in hits]


def organization_url(organization: Organization) -> str:
    return reverse("support:organization", args=[organization.pk])


def _agent_url(organization: Organization, client: Client) -> str:
    return f"{organization_url(organization)}?{urlencode({'find': client.name})}#agents"


def _searches(words: str) -> list[Callable[[str], Iterable[Hit]]]:
    if "@" in words:
        return [_people_by_address]
    if _KEY.fullmatch(words):
        return [_keys]
    if _TOKEN.fullmatch(words):
        return [_tokens]
    if _CLIENT.fullmatch(words):
        return [_clients]
    searches: list[Callable[[str], Iterable[Hit]]] = [_organizations]
    if parse_id(words.lower()):
        searches += [_people_by_id, _clients_by_id]
    if is_request_id(words):
        searches.append(_requests)
    return searches


def _organizations(words: str) -> Iterable[Hit]:
    key = parse_id(words.lower())
    rows = Organization.objects.filter(pk=key) if key else Organization.objects.filter(name__icontains=words)
    for row in rows.order_by("name", "id")[:SHOWN]:
        yield Hit("Organization", row.name, str(row.pk), organization_url(row))


def _people_by_address(words: str) -> Iterable[Hit]:
    return map(_person_hit, User.objects.filter(email__iexact=words).order_by("created_at", "id")[:SHOWN])


def _people_by_id(words: str) -> Iterable[Hit]:
    return map(_person_hit, User.objects.filter(pk=words.lower()))


def _person_hit(row: User) -> Hit:
    # A thief may claim an address that the identity provider has not verified, and then write a ticket.
    marks = [row.email, *["not verified"] * (not row.email_verified), *["deactivated"] * (not row.is_active)]
    note = ", ".join(marks)
    return Hit("Person", row.name, note, reverse("support:person", args=[row.pk]))


def _keys(words: str) -> Iterable[Hit]:
    rows = AgentKey.objects.filter(prefix__startswith=words).select_related("client__organization")
    for row in rows.order_by("prefix")[:SHOWN]:
        if row.client.organization is not None:
            note = f"{row.client.name} of {row.client.organization.name}"
            yield Hit("Agent key", row.prefix, note, _agent_url(row.client.organization, row.client))


def _tokens(words: str) -> Iterable[Hit]:
    rows = ManagementToken.objects.filter(prefix__startswith=words).select_related("membership__user")
    for row in rows.order_by("prefix")[:SHOWN]:
        person = row.membership.user
        note = f"{row.name} of {person.name}"
        yield Hit("Management token", row.prefix, note, reverse("support:person", args=[person.pk]))


def _clients(words: str) -> Iterable[Hit]:
    return map(_client_hit, Client.objects.filter(client_id=words).select_related("organization"))


def _clients_by_id(words: str) -> Iterable[Hit]:
    return map(_client_hit, Client.objects.filter(pk=words.lower()).select_related("organization"))


def _client_hit(row: Client) -> Hit:
    if row.organization is None:
        # It belongs to no organization, and has no page.
        return Hit(APP, row.name, row.client_id, reverse("support:app-action", args=[row.pk, "delete"]))
    note = f"{row.client_id} of {row.organization.name}"
    return Hit("Agent", row.name, note, _agent_url(row.organization, row))


def _requests(words: str) -> Iterable[Hit]:
    """One step along the log's index for each organization, in one statement."""
    rows = Organization.objects.alias(call=request_subquery("pk", words)).filter(call__isnull=False)
    for row in rows.order_by("name", "id")[:SHOWN]:
        yield Hit("Request", words, row.name, reverse("support:request", args=[row.pk, words]))
