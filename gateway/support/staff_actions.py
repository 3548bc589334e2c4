"""The actions of staff in the console, each with its consequences in numbers and the service that does it.

A new action is a new row of one of the tables at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from audit.actor import Actor, Target
from audit.selectors import last_calls
from billing.services import set_subscription
from billing.states import SubscriptionStatus
from gateway.lib.errors import Conflict, DomainError
from gateway.lib.ids import known_id
from gateway.lib.rows import required_row
from gateway.lib.sentences import sentence
from oauth_ext.models import AgentKey, Client, TokenFamily
from oauth_ext.selectors import clients_shown_to, service_client
from oauth_ext.services.agent_keys import end_agent_key
from oauth_ext.services.deactivation import deactivate_person, reactivate_person
from oauth_ext.services.registration import delete_registered_client
from oauth_ext.services.service_clients import delete_service_client
from oauth_ext.services.token_families import revoke_family_as_staff
from orgs.models import Invitation, MailDomain, ManagementToken, Membership, Organization, ServerAccess, User
from orgs.pages.members import removal_impact_of
from orgs.selectors import member, pending_invitation
from orgs.services.browser_sessions import end_sessions_as_staff, sessions_in_force
from orgs.services.invitations import revoke_invitation
from orgs.services.mail_domains import confirm_domain, release_domain
from orgs.services.management_tokens import end_token
from orgs.services.members import remove_member
from orgs.services.server_access import remove_member_vendor, remove_team_vendor


class OtherStaff(DomainError):
    """Only a superuser ends the access of support staff."""

    code, message, status = "forbidden", sentence("Only superusers can do this to support staff."), 403


@dataclass(frozen=True, slots=True)
class Action:
    """`load` takes the organization (None for a person) and the thing's id. `is_open`: whether it is offered at all."""

    title: str
    load: Callable[[Any, str], Any]
    target: Callable[[Any], Target]
    consequences: Callable[[Any], Iterator[str]]
    run: Callable[[Actor, Any], object]
    is_open: Callable[[], bool] = lambda: True
    is_danger: bool = True


# ---- members ----
def _removal(row: Membership) -> Iterator[str]:
    impact = removal_impact_of(row.organization, row)
    yield f"{row.user.name} leaves {row.organization.name}, and needs a new invitation to come back."
    yield f"Connected apps that end: {impact.apps}. Access tokens: {impact.tokens}."
    yield f"Vendors that they lose: {len(impact.vendors)}. Teams: {len(impact.teams)}."
    yield f"Pending invitations of theirs that are revoked: {impact.ended_invitations}."
    if impact.agents:
        yield f"They were shown a key or secret of these agents, which keep working: {', '.join(impact.agents)}."


def _remove(actor: Actor, row: Membership) -> None:
    remove_member(actor=actor, organization=row.organization, user_id=row.user_id)


# ---- invitations ----
def _invitation(organization: Organization, thing: str) -> Invitation:
    return pending_invitation(organization, known_id(thing))


def _open_link(row: Invitation) -> Iterator[str]:
    yield f"The link for {row.email or 'anyone'} no longer lets anyone in."
    yield f"Uses left: {row.max_uses - row.use_count} of {row.max_uses}. The people who joined stay members."


def _revoke_link(actor: Actor, row: Invitation) -> None:
    revoke_invitation(actor=actor, organization=row.organization, invitation_id=row.pk)


# ---- management tokens ----
def _token(organization: Organization, thing: str) -> ManagementToken:
    rows = ManagementToken.objects.select_related("membership__user", "membership__organization")
    return required_row(rows.filter(membership__organization=organization, pk=known_id(thing)))


def _token_end(row: ManagementToken) -> Iterator[str]:
    yield f"Scripts with the management token {row.name} of {row.membership.user.name} are refused at once."
    shown = clients_shown_to(row.membership.organization, row.membership.user, token=row)
    if shown:
        yield f"A script with it was shown a key or secret of these agents, which keep working: {_names(shown)}."


def _names(clients: list[Client]) -> str:
    return ", ".join(client.name for client in clients)


def _end_token(actor: Actor, row: ManagementToken) -> None:
    end_token(actor=actor, token_id=row.pk)


# ---- agents ----
def _key(organization: Organization, thing: str) -> AgentKey:
    rows = AgentKey.objects.select_related("client__organization")
    return required_row(rows.filter(client__organization=organization, pk=known_id(thing)))


def _client_target(row: AgentKey | TokenFamily) -> Target:
    return row.client.as_target()


def _key_end(row: AgentKey) -> Iterator[str]:
    keys = 1 if row.ends_at else AgentKey.objects.filter(client=row.client).count()
    yield f"Keys of {row.client.name} that end at once: {keys}. The agent, its client secret and its limits stay."
    yield from _last_call(row.client)


def _end_key(actor: Actor, row: AgentKey) -> None:
    end_agent_key(actor=actor, key=row)


def _agent(organization: Organization, thing: str) -> Client:
    return service_client(organization, str(known_id(thing)))


def _agent_end(row: Client) -> Iterator[str]:
    keys = AgentKey.objects.filter(client=row).count()
    families = TokenFamily.objects.filter(client=row).count()
    yield f"{row.name} is deleted. Keys that end: {keys}. Authorizations: {families}."
    yield "Its own credentials are deleted too. Its calls stay in the log."
    yield from _last_call(row)


def _last_call(client: Client) -> Iterator[str]:
    if client.organization_id is not None:
        found = last_calls(client.organization_id, [client.subject]).get(client.subject)
        yield f"Its last call was on {found:%d %b %Y, %H:%M} UTC." if found else "It has not called yet."


def _delete_agent(actor: Actor, row: Client) -> None:
    delete_service_client(actor=actor, client=row)


# ---- apps ----
def _family(organization: Organization, thing: str) -> TokenFamily:
    rows = TokenFamily.objects.select_related("client", "organization", "user")
    return required_row(rows.filter(organization=organization, pk=known_id(thing)))


def _family_end(row: TokenFamily) -> Iterator[str]:
    who = row.user.name if row.user else "the agent itself"
    yield f"1 authorization of {row.client.name} for {who} ends, with all its tokens."
    yield "The app asks for consent again before its next call."


def _end_family(actor: Actor, row: TokenFamily) -> None:
    revoke_family_as_staff(actor=actor, family_id=row.pk)


# ---- server access ----
_KEY_DIGITS = 18  # of a number that fits the column


def _access(organization: Organization, thing: str) -> ServerAccess:
    rows = ServerAccess.objects.select_related("membership__user", "team", "organization")
    is_key = thing.isdecimal() and len(thing) <= _KEY_DIGITS
    return required_row(rows.filter(organization=organization, pk=int(thing) if is_key else 0))


def _access_target(row: ServerAccess) -> Target:
    holder = row.membership.user if row.membership is not None else row.team
    found: Target = holder.as_target() if holder is not None else Target(id=str(row.pk), label=row.vendor)
    return found


def _access_end(row: ServerAccess) -> Iterator[str]:
    people = 1 if row.team is None else row.team.team_memberships.count()
    yield f"Members who lose this way to {row.vendor}: {people}. Other ways, such as a role or a team, stay."


def _revoke_access(actor: Actor, row: ServerAccess) -> None:
    if row.membership is not None:
        user_id = row.membership.user_id
        remove_member_vendor(actor=actor, organization=row.organization, vendor=row.vendor, user_id=user_id)
    elif row.team_id is not None:
        remove_team_vendor(actor=actor, organization=row.organization, vendor=row.vendor, team_id=row.team_id)


# ---- mail domains ----
def _domain(organization: Organization, thing: str) -> MailDomain:
    return required_row(MailDomain.objects.filter(organization=organization, pk=known_id(thing)))


def _domain_words(what: str) -> Callable[[MailDomain], Iterator[str]]:
    def words(row: MailDomain) -> Iterator[str]:
        claims = MailDomain.objects.filter(domain=row.domain).count()
        yield f"{what} Organizations that claim {row.domain}: {claims}."
        if row.claimed_by is not None:
            yield f"Claimed by {row.claimed_by.name} ({row.claimed_by.email}) on {row.created_at:%d %b %Y}."

    return words


def _confirm_domain(actor: Actor, row: MailDomain) -> None:
    confirm_domain(actor=actor, domain_id=row.pk)


def _release_domain(actor: Actor, row: MailDomain) -> None:
    release_domain(actor=actor, organization=row.organization, domain_id=row.pk)


# ---- plan ----
def _organization(organization: Organization, thing: str) -> Organization:
    return required_row(Organization.objects.filter(pk=organization.pk).filter(pk=known_id(thing)))


def _plan_of(status: SubscriptionStatus) -> Callable[[Actor, Organization], object]:
    def run(actor: Actor, organization: Organization) -> object:
        return set_subscription(actor=actor, organization=organization, status=status)

    return run


def _plan_words(what: str) -> Callable[[Organization], Iterator[str]]:
    def words(row: Organization) -> Iterator[str]:
        people = Membership.objects.filter(organization=row).count()
        agents = Client.objects.filter(organization=row).count()
        yield f"{what} at once. Members: {people}. Agents: {agents}."

    return words


def _by_hand() -> bool:
    # With a payment provider, its events alone set the state.
    return bool(settings.BILLING_MODE == "manual")


# ---- apps that registered themselves ----
def _app(_: None, thing: str) -> Client:
    return required_row(Client.objects.filter(organization=None, pk=known_id(thing)))


def _app_end(row: Client) -> Iterator[str]:
    families = TokenFamily.objects.filter(client=row)
    organizations = families.values("organization_id").distinct().count()
    yield f"{row.name} is deleted. Authorizations that end: {families.count()}, in {organizations} organizations."
    yield "The app may register again, and then asks for consent again."


def _delete_app(actor: Actor, row: Client) -> None:
    delete_registered_client(actor=actor, client_pk=row.pk)


# ---- people ----
def _person(_: None, thing: str) -> User:
    return required_row(User.objects.filter(pk=known_id(thing)))


def _sessions(row: User) -> Iterator[str]:
    sessions = len(sessions_in_force(row))
    yield f"Browser sessions of {row.name} that end at once: {sessions}."
    yield "Connected apps, management tokens and agent keys go on working."


def _end_sessions(actor: Actor, row: User) -> None:
    end_sessions_as_staff(actor=actor, user_id=row.pk)


def _deactivation(row: User) -> Iterator[str]:
    families = TokenFamily.objects.filter(user=row).count()
    keys = AgentKey.objects.filter(created_by=row).count()
    yield f"{row.name} can’t sign in to this service until staff let them sign in again."
    yield f"Browser sessions that end: {len(sessions_in_force(row))}. App authorizations: {families}."
    yield f"Agent keys of this person’s making that end, in every organization: {keys}."
    yield f"Memberships that stay, without effect: {Membership.objects.filter(user=row).count()}."


def _deactivate(actor: Actor, row: User) -> None:
    # The person would lose access to the console at once.
    if str(row.pk) == actor.id:
        raise Conflict(sentence("You can’t deactivate yourself."))
    deactivate_person(actor=actor, user_id=row.pk)


def _reactivation(row: User) -> Iterator[str]:
    yield f"{row.name} may sign in again. Memberships that count again: {Membership.objects.filter(user=row).count()}."
    yield "Ended sessions, tokens and agent keys stay ended."


def _reactivate(actor: Actor, row: User) -> None:
    reactivate_person(actor=actor, user_id=row.pk)


def _as_target(row: Any) -> Target:
    found: Target = row.as_target()
    return found


ORGANIZATION_ACTIONS: dict[str, Action] = {
    "remove-member": Action("Remove member", member, lambda row: row.user.as_target(), _removal, _remove),
    "revoke-invitation": Action("Revoke invitation", _invitation, _as_target, _open_link, _revoke_link),
    "revoke-key": Action("Revoke agent key", _key, _client_target, _key_end, _end_key),
    "revoke-token": Action("Revoke management token", _token, _as_target, _token_end, _end_token),
    "delete-agent": Action("Delete agent", _agent, _as_target, _agent_end, _delete_agent),
    "revoke-access": Action("Revoke server access", _access, _access_target, _access_end, _revoke_access),
    "revoke-app": Action("Revoke app", _family, _client_target, _family_end, _end_family),
    "confirm-domain": Action(
        "Confirm mail domain",
        _domain,
        _as_target,
        _domain_words("People with its addresses can join."),
        _confirm_domain,
        is_danger=False,
    ),
    "release-domain": Action(
        "Release mail domain",
        _domain,
        _as_target,
        _domain_words("People with its addresses can no longer join. Members stay."),
        _release_domain,
    ),
    "activate-plan": Action(
        "Set the plan to active",
        _organization,
        _as_target,
        _plan_words("Paid functions open"),
        _plan_of(SubscriptionStatus.ACTIVE),
        _by_hand,
        is_danger=False,
    ),
    "cancel-plan": Action(
        "Set the plan to canceled",
        _organization,
        _as_target,
        _plan_words("Paid functions close"),
        _plan_of(SubscriptionStatus.CANCELED),
        _by_hand,
    ),
}
PERSON_ACTIONS: dict[str, Action] = {
    "end-sessions": Action("End sessions", _person, _as_target, _sessions, _end_sessions),
    "deactivate": Action("Deactivate person", _person, _as_target, _deactivation, _deactivate),
    "reactivate": Action("Let sign in again", _person, _as_target, _reactivation, _reactivate, is_danger=False),
}
APP_ACTIONS: dict[str, Action] = {
    "delete": Action("Delete app", _app, _as_target, _app_end, _delete_app),
}
