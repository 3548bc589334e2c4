"""Tokens for identity assertions: the trust, the person, the single use, the token family. docs/decisions/0109"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Q

from audit.admin_log import record_admin
from audit.event_types import EventType
from gateway.lib import clock, secrets
from oauth_ext import lock_order
from oauth_ext.jwt.assertion import LEEWAY_S, Assertion
from oauth_ext.models import Client, LinkedSubject, TokenFamily, TrustedIssuer, UsedAssertion
from oauth_ext.services.token_families import TOKEN_SERVER
from orgs.models import Identity, MailDomain, Membership, User

_USE_NOTED_EVERY = timedelta(minutes=5)


class UnknownPerson(Exception):
    """The assertion leads to no active member, or the trust or the client has ended meanwhile."""


class UsedBefore(Exception):
    """The assertion has given a token already."""


def trust_for(client: Client, issuer: str) -> TrustedIssuer | None:
    """The trust of the client's own organization in `issuer`, if the client may use it."""
    if client.organization_id is None:
        return None
    found = TrustedIssuer.objects.filter(organization_id=client.organization_id, issuer=issuer).first()
    if found is None or (found.client_ids and client.client_id not in found.client_ids):
        return None
    return found


def locked_person(trust: TrustedIssuer, found: Assertion, client: Client) -> User:
    """The member that the assertion names, whose row and trust exist until the transaction ends.

    Raises: UnknownPerson.
    """
    user_id = _person_id(trust, found)
    if user_id is None or not lock_order.lock(
        org_id=trust.organization_id, user_id=user_id, client_pk=client.pk, trust_pk=trust.pk
    ):
        raise UnknownPerson
    user = User.objects.filter(pk=user_id, is_active=True).first()
    # Both again, under the locks: an owner may have changed them since the client was authenticated.
    if user is None or trust_for(client, trust.issuer) != trust:
        raise UnknownPerson
    if not Client.objects.filter(pk=client.pk, acts_for_people=True).exists():
        raise UnknownPerson
    return user


def use_up(trust: TrustedIssuer, found: Assertion) -> None:
    """Raises: UsedBefore. Of parallel requests in any processes one passes: the unique constraint decides."""
    digest = secrets.sha256(f"{trust.organization_id}\n{found.issuer}\n{found.token_id}")
    kept_until = found.expires_at + timedelta(seconds=LEEWAY_S)
    try:
        with transaction.atomic():
            UsedAssertion.objects.create(assertion_sha256=digest, expires_at=kept_until)
    except IntegrityError:
        raise UsedBefore from None


def family_of(
    trust: TrustedIssuer, client: Client, user: User, *, scopes: Sequence[str], resources: Sequence[str]
) -> TokenFamily:
    """The one family of the client's tokens about this person, which the person sees and may end."""
    now = clock.now()
    fresh = {
        "scope": " ".join(scopes),
        "resource": list(resources),
        "last_used_at": now,
        "expires_at": now + timedelta(days=settings.REFRESH_ABSOLUTE_DAYS),
    }
    owned = {"trusted_issuer": trust, "client": client, "user": user}
    # `link` holds the subject's row, so that parallel requests about it find one family.
    family = TokenFamily.objects.select_for_update().filter(**owned).order_by("pk").first()
    if family is None:
        family = TokenFamily.objects.create(**owned, **fresh, organization_id=trust.organization_id)
    else:
        TokenFamily.objects.filter(pk=family.pk).update(**fresh)
    TrustedIssuer.objects.filter(_use_is_due(), pk=trust.pk).update(last_used_at=now)
    return family


def unlink_member(org_id: UUID, user_id: UUID) -> None:
    """A person who joins again is bound anew."""
    LinkedSubject.objects.filter(issuer__organization_id=org_id, user_id=user_id).delete()


def _person_id(trust: TrustedIssuer, found: Assertion) -> UUID | None:
    """By the bound subject; else by the subject's sign-in here; else by an address in a domain of the organization."""
    linked = LinkedSubject.objects.filter(issuer=trust, sub=found.subject).values_list("user_id", flat=True).first()
    if linked is not None:
        return linked
    members = Membership.objects.filter(organization_id=trust.organization_id, user__is_active=True)
    if not trust.jwks_url and not trust.tenant:
        # Keys of another address prove nothing about people who signed in at the issuer itself.
        same = Identity.objects.filter(issuer=found.issuer, sub=found.subject).values("user_id")
        signed_in: UUID | None = members.filter(user__in=same).values_list("user_id", flat=True).first()
        if signed_in is not None:
            return signed_in
    domain = found.email.rpartition("@")[2].lower()
    owned = MailDomain.objects.filter(organization_id=trust.organization_id, domain=domain, confirmed_at__isnull=False)
    if not domain or not owned.exists():
        return None
    same_address = members.filter(user__email__iexact=found.email, user__email_verified=True)
    people = list(same_address.values_list("user_id", flat=True)[:2])
    # Two people may have one address.
    return people[0] if len(people) == 1 else None


def link(trust: TrustedIssuer, found: Assertion, user: User) -> None:
    """Bind the subject to the person at its first assertion. Raises: UnknownPerson if it is another person's by now."""
    rows = LinkedSubject.objects.select_for_update()
    row, is_new = rows.get_or_create(issuer=trust, sub=found.subject, defaults={"user": user})
    if row.user_id != user.pk:
        raise UnknownPerson
    if is_new:
        record_admin(
            EventType.TRUSTED_ISSUER_SUBJECT_LINKED,
            org_id=trust.organization_id,
            actor=TOKEN_SERVER,
            target=user.as_target(),
            metadata={"issuer": trust.issuer, "subject": found.subject},
        )


def _use_is_due() -> Q:
    return Q(last_used_at=None) | Q(last_used_at__lte=clock.now() - _USE_NOTED_EVERY)
