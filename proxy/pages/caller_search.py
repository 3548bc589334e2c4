"""People and agents of an organization by their names, e-mail addresses and ids."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.translation import gettext

from gateway.lib import ids
from gateway.lib.errors import NotFound
from oauth_ext import selectors as clients
from orgs import selectors
from orgs.models import Organization


@dataclass(frozen=True, slots=True)
class FoundCaller:
    """`typed`: a text that finds this caller again; `note`: tells callers of one name apart."""

    subject: str
    typed: str
    name: str
    note: str


def callers_named(organization: Organization, words: str, limit: int) -> list[FoundCaller]:
    """At most `limit` people and as many agents, people first. Without words: the first ones."""
    members = selectors.members(organization, matching=words)[:limit]
    agents = clients.service_clients_named(organization, words)[:limit]
    people = [FoundCaller(str(row.user_id), row.user.email, row.user.name, row.user.email) for row in members]
    return people + [FoundCaller(each.subject, each.client_id, each.name, gettext("agent")) for each in agents]


def callers_meant(organization: Organization, who: str, limit: int) -> list[FoundCaller]:
    """The callers that a typed text may mean: one for an id or a whole address or name, else all that match.

    Look-ups stay inside the organization.
    """
    exact = _by_id(organization, who)
    if exact is not None:
        return [exact]
    found = callers_named(organization, who, limit)
    whole = [each for each in found if who.casefold() in (each.typed.casefold(), each.name.casefold())]
    return whole or found


def _by_id(organization: Organization, who: str) -> FoundCaller | None:
    key = ids.parse_id(who)
    member = selectors.members(organization).filter(user_id=key).first() if key else None
    if member is not None:
        return FoundCaller(str(member.user_id), member.user.email, member.user.name, member.user.email)
    try:
        client = clients.service_client(organization, who.rpartition(":")[2] if who.startswith("svc:") else who)
    except NotFound:
        return None
    # A whole subject names its organization too.
    if who.startswith("svc:") and client.subject != who:
        return None
    return FoundCaller(client.subject, client.client_id, client.name, gettext("agent"))
