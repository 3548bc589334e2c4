"""Tokens for identity assertions: the trust, the person, the single use, the token family. docs/decisions/0109"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet

from audit.admin_log import record_admin
from audit.event_types import EventType
from gateway.lib import clock, secrets
from oauth_ext import lock_order
from oauth_ext.jwt.assertion import LEEWAY_S, Assertion
from oauth_ext.models import Client, LinkedSubject, TokenFamily, TrustedIssuer, UsedAssertion
from oauth_ext.services.token_families import TOKEN_SERVER, end_families
from orgs.models import Identity, MailDomain, Membership, User
from orgs.services.identities import people_with_email
from orgs.signin.confirmation import is_refused

_USE_NOTED_EVERY = timedelta(minutes=5)


class UnknownPerson(Exception):
    """The assertion leads to no active member, or the trust or the client has ended meanwhile."""


class UsedBefore(Exception):
    """The assertion has given a token already."""


@dataclass(frozen=True, slots=True)
class Recognized:
    """A member. `domain`: see LinkedSubject."""

    user: User
    domain: str


def trust_for(client: Client, issuer: str) -> TrustedIssuer | None:
    """The trust of the client's own organization in `issuer`, if the client may use it."""
    if client.organization_id is None:
        return None
    found = TrustedIssuer.objects.filter(organization_id=client.organization_id, issuer=issuer).first()
    if found is None or (found.client_ids and client.client_id not in found.client_ids):
        return None
    return found


def locked_person(trust: TrustedIssuer, found: Assertion, client: Client) -> Recognized:
    """The member that the assertion names, whose row and trust exist until the transaction ends.

    Raises: UnknownPerson.
    """
    known = _recognized(trust, found)
    if known is None or not lock_order.lock(
        org_id=trust.organization_id, user_id=known.user.pk, client_pk=client.pk, trust_pk=trust.pk
    ):
        raise UnknownPerson
    # All again, under the locks: they may have changed since the client was authenticated.
    if trust_for(client, trust.issuer) != trust:
        raise UnknownPerson
    if not Client.objects.filter(pk=client.pk, acts_for_people=True).exists():
        raise UnknownPerson
    # A removal or a release ends this request's token too, or is seen here.
    if not lock_order.lock_first(_memberships(trust).filter(user=known.user)):
        raise UnknownPerson
    if known.domain and not lock_order.lock_first(_confirmed(trust, known.domain)):
        raise UnknownPerson
    # The provider of sign-ins has the last word about a person, as for refresh tokens.
    if is_refused(known.user.pk):
        raise UnknownPerson
    return known


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


def end_families_by_domain(org_id: UUID, domain: str) -> None:
    """End the tokens of people who were recognized by the domain, which is no longer the organization's."""
    subjects = LinkedSubject.objects.filter(issuer__organization_id=org_id, domain=domain)
    families = TokenFamily.objects.filter(
        trusted_issuer__organization_id=org_id, user_id__in=subjects.values_list("user_id", flat=True)
    )
    end_families(families)


def unlink_member(org_id: UUID, user_id: UUID) -> None:
    """A person who joins again is bound anew."""
    LinkedSubject.objects.filter(issuer__organization_id=org_id, user_id=user_id).delete()


def link(trust: TrustedIssuer, found: Assertion, known: Recognized) -> None:
    """Bind the subject to the person at its first assertion. Raises: UnknownPerson if it is another person's by now, or
    the person is another subject's."""
    rows = LinkedSubject.objects.select_for_update()
    fresh = {"user": known.user, "domain": known.domain}
    try:
        row, is_new = rows.get_or_create(issuer=trust, sub=found.subject, defaults=fresh)
    except IntegrityError:
        raise UnknownPerson from None
    if row.user_id != known.user.pk:
        raise UnknownPerson
    if is_new:
        record_admin(
            EventType.TRUSTED_ISSUER_SUBJECT_LINKED,
            org_id=trust.organization_id,
            actor=TOKEN_SERVER,
            target=known.user.as_target(),
            metadata={"issuer": trust.issuer, "subject": found.subject},
        )


def _recognized(trust: TrustedIssuer, found: Assertion) -> Recognized | None:
    """By the bound subject; else by the subject's sign-in here; else by an address in a domain of the organization."""
    linked = LinkedSubject.objects.select_related("user").filter(issuer=trust, sub=found.subject).first()
    if linked is not None:
        is_current = not linked.domain or _confirmed(trust, linked.domain).exists()
        return Recognized(linked.user, linked.domain) if is_current else None
    return _signed_in(trust, found) or _by_address(trust, found)


def _signed_in(trust: TrustedIssuer, found: Assertion) -> Recognized | None:
    # Keys of another address prove nothing about people who signed in at the issuer itself.
    if trust.jwks_url or trust.tenant:
        return None
    rows = Identity.objects.select_related("user").filter(issuer=trust.issuer, sub=found.subject)
    identity = rows.filter(user__in=_memberships(trust).values("user")).first()
    return None if identity is None else Recognized(identity.user, "")


def _by_address(trust: TrustedIssuer, found: Assertion) -> Recognized | None:
    domain = found.email.rpartition("@")[2].lower()
    # Beyond ASCII many letters look alike, so such an address leads to no one.
    if not domain or not found.email.isascii() or not _confirmed(trust, domain).exists():
        return None
    people = people_with_email(found.email, Q(email_verified=True, pk__in=_memberships(trust).values("user")))
    # Two people may have one address.
    if len(people) != 1 or _is_another_subject(trust, found, people[0]):
        return None
    return Recognized(people[0], domain)


def _is_another_subject(trust: TrustedIssuer, found: Assertion, user: User) -> bool:
    """Whether the issuer knows the person as another subject, so that the address has changed hands."""
    signed_in = Identity.objects.filter(issuer=trust.issuer, user=user).exclude(sub=found.subject)
    return signed_in.exists() or LinkedSubject.objects.filter(issuer=trust, user=user).exists()


def _memberships(trust: TrustedIssuer) -> QuerySet[Membership]:
    return Membership.objects.filter(organization_id=trust.organization_id, user__is_active=True)


def _confirmed(trust: TrustedIssuer, domain: str) -> QuerySet[MailDomain]:
    return MailDomain.objects.filter(organization_id=trust.organization_id, domain=domain, confirmed_at__isnull=False)


def _use_is_due() -> Q:
    return Q(last_used_at=None) | Q(last_used_at__lte=clock.now() - _USE_NOTED_EVERY)
