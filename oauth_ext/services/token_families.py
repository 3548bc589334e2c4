"""Begins and ends token families."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from audit.actor import Actor, system
from audit.admin_log import record_admin
from audit.event_types import EventType
from gateway.coordination import epochs
from gateway.lib import clock
from gateway.lib.errors import NotFound
from gateway.lib.revocation_journal import End, EndKind, note
from gateway.lib.sentences import sentence
from oauth_ext import lock_order
from oauth_ext.models import AccessToken, Client, RememberedConsent, TokenFamily
from orgs.models import User

TOKEN_SERVER = system(sentence("token server"))


def begin_family(
    *,
    client: Client,
    user: User | None,
    org_id: uuid.UUID,
    approved_by_id: uuid.UUID | None,
    scopes: Sequence[str],
    resources: Sequence[str],
    redirect_host: str = "",
) -> TokenFamily:
    """Stores a family without tokens, for 180 days. Spec: D123"""
    now = clock.now()
    return TokenFamily.objects.create(
        client=client,
        user=user,
        organization_id=org_id,
        approved_by_id=approved_by_id,
        scope=" ".join(scopes),
        resource=list(resources),
        redirect_host=redirect_host,
        created_at=now,
        last_used_at=now,
        expires_at=now + timedelta(days=settings.REFRESH_ABSOLUTE_DAYS),
    )


def locked_family(family_id: uuid.UUID) -> TokenFamily | None:
    """Returns the family under its lock, or None when it has ended; every change of its tokens needs this lock."""
    found = TokenFamily.objects.filter(pk=family_id).first()
    # The rows above the family come first, as in lock_order.
    if found is None or not lock_order.lock(
        org_id=found.organization_id, user_id=found.user_id, client_pk=found.client_id
    ):
        return None
    rows = TokenFamily.objects.select_for_update(of=("self",)).select_related("client", "user")
    return rows.filter(pk=family_id).first()


def lock_families_of(client: Client) -> None:
    """Stops new and ended tokens of the client; the caller holds the client's lock."""
    list(TokenFamily.objects.select_for_update().filter(client=client).order_by("pk").values_list("pk"))


def bump_clients(*clients: Client) -> None:
    """On commit, every process looks the clients up again, also in calls that they make for people."""
    epochs.bump_on_commit(*sorted({epochs.subject(client.subject) for client in clients}))
    bump_people_of(*clients)


def bump_people_of(*clients: Client) -> None:
    """The people for whom the clients have a token now."""
    keys = sorted(client.pk for client in clients)
    # A token that is being stored now is seen here, or its first call sees the change.
    list(Client.objects.select_for_update().filter(pk__in=keys).order_by("pk").values_list("pk"))
    tokens = AccessToken.objects.filter(application__in=keys, user__isnull=False, expires__gt=clock.now())
    people = sorted({str(user_id) for user_id in tokens.values_list("user_id", flat=True)})
    epochs.bump_on_commit(*map(epochs.subject, people))


def end_families(families: QuerySet[TokenFamily]) -> int:
    """Ends all their tokens; the caller holds a lock that new ones wait for. Returns how many people had one."""
    held = list(families.select_for_update(of=("self",)).order_by("pk"))
    TokenFamily.objects.filter(pk__in=[family.pk for family in held]).delete()
    people = sorted({family.subject for family in held})
    epochs.bump_on_commit(*map(epochs.subject, people))
    return len(people)


def end_token_alone(token: AccessToken) -> None:
    """Ends a token without a family, or an agent's about a person, whose family is that of the person's app."""
    client: Client | None = token.application
    if token.token_family_id is not None:
        # A receiver notes the others.
        note(End(EndKind.ACCESS_TOKEN, str(token.pk), str(token.organization_id)))
    token.delete()
    if token.user_id is not None:
        epochs.bump_on_commit(epochs.subject(str(token.user_id)))
    elif client is not None:
        epochs.bump_on_commit(epochs.subject(client.subject))


def end_family(family: TokenFamily) -> None:
    """Ends all tokens of the family; the caller holds its lock."""
    subject = family.subject
    # The epoch makes every process refuse the tokens at their next use.
    family.delete()
    epochs.bump_on_commit(epochs.subject(subject))


def end_misused_family(family: TokenFamily, event: EventType, **facts: object) -> None:
    """Ends a family whose code or refresh token was used again: one of two holders is a thief. Spec: D123"""
    record_admin(
        event,
        org_id=family.organization_id,
        actor=TOKEN_SERVER,
        target=family.client.as_target(),
        metadata={**facts_of(family), **facts},
    )
    end_family(family)


def end_refused_family(family: TokenFamily) -> None:
    """Ends the family of a person whom the identity provider refuses; the caller holds its lock."""
    record_admin(
        EventType.OAUTH_PERSON_REFUSED,
        org_id=family.organization_id,
        actor=TOKEN_SERVER,
        target=family.client.as_target(),
        metadata=facts_of(family),
    )
    end_family(family)


@transaction.atomic
def revoke_app(*, actor: User, family_id: uuid.UUID, org_id: uuid.UUID, only_of: User | None = None) -> str:
    """Returns the app's name. Raises: NotFound outside the organization, or the person `only_of`. Spec: ux.md 3"""
    family = locked_family(family_id)
    if family is None or family.organization_id != org_id:
        raise NotFound
    if only_of is not None and family.user_id != only_of.pk:
        raise NotFound
    _revoke(family, actor=actor.as_actor(), facts={})
    return str(family.client.name)


@transaction.atomic
def revoke_family_as_staff(*, actor: Actor, family_id: uuid.UUID) -> None:
    """Ends a family of any organization, whose log names the staff member. Raises: NotFound when it has ended."""
    family = locked_family(family_id)
    if family is None:
        raise NotFound
    _revoke(family, actor=actor, facts={"by": "support staff"})


def _revoke(family: TokenFamily, *, actor: Actor, facts: Mapping[str, object]) -> None:
    record_admin(
        EventType.OAUTH_APP_REVOKED,
        org_id=family.organization_id,
        actor=actor,
        target=family.client.as_target(),
        metadata={**facts_of(family), **facts},
    )
    if family.user_id is not None:
        RememberedConsent.objects.filter(user_id=family.user_id, client_id=family.client_id).delete()
    end_family(family)


def facts_of(family: TokenFamily) -> dict[str, object]:
    facts: dict[str, object] = {"client_id": family.client.client_id, "scope": family.scope}
    if family.user is not None:
        facts |= {"user_id": str(family.user.pk), "user": family.user.label}
    return facts
