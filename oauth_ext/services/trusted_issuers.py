"""Trust in an identity provider: set and ended by owners. docs/decisions/0109"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit
from uuid import UUID

from django.conf import settings
from django.db import transaction

from audit.actor import Actor
from audit.admin_log import record_admin
from audit.event_types import EventType
from gateway.lib.errors import Conflict, Invalid
from gateway.lib.outbound import AddressRefused, check_url
from gateway.lib.rows import required_row
from gateway.lib.sentences import sentence
from oauth_ext import issuer_keys
from oauth_ext.issuer_keys import KeysUnavailable
from oauth_ext.jwt.assertion import ALGORITHMS
from oauth_ext.models import Client, TokenFamily, TrustedIssuer
from oauth_ext.models.trusted_issuer import ISSUER_CHARACTERS, JWKS_URL_CHARACTERS
from oauth_ext.services.token_families import end_families
from orgs.locking import lock_for_change
from orgs.models import Organization, User
from orgs.quotas import require_quota
from orgs.roles import Role

DEFAULT_ALGORITHMS = ("RS256", "ES256")


@dataclass(frozen=True, slots=True)
class Wanted:
    """An owner's input. Empty: `jwks_url` for discovery, `tenant` for none, `client_ids` for every agent that may act
    for people."""

    issuer: str
    jwks_url: str = ""
    tenant: str = ""
    algorithms: Sequence[str] = DEFAULT_ALGORITHMS
    client_ids: Sequence[str] = ()


def trusted_issuers(organization: Organization) -> list[TrustedIssuer]:
    """By address."""
    return list(TrustedIssuer.objects.filter(organization=organization).order_by("issuer"))


def trusted_issuer(organization: Organization, issuer_id: UUID) -> TrustedIssuer:
    """Raises: NotFound, also for another organization's."""
    return required_row(TrustedIssuer.objects.filter(organization=organization, pk=issuer_id))


def people_with_tokens(trust: TrustedIssuer) -> int:
    return TokenFamily.objects.filter(trusted_issuer=trust).values("user").distinct().count()


def add_issuer(*, actor: User, organization: Organization, wanted: Wanted) -> TrustedIssuer:
    """Trust the issuer once its keys could be read.

    Raises: Invalid with `fields`; Conflict for one that is trusted already; LimitReached; NotFound, Forbidden for all
    but owners.
    """
    faults = _faults(organization, wanted)
    if not faults:
        faults = _faults_of_keys(organization, wanted)
    if faults:
        raise Invalid(fields=faults)
    return _stored(actor, organization, wanted)


@transaction.atomic
def remove_issuer(*, actor: User | Actor, organization: Organization, issuer_id: UUID) -> None:
    """The tokens that were given for its assertions end. Raises: NotFound; Forbidden for all but owners."""
    locked = lock_for_change(organization, actor=actor, role=Role.OWNER)
    # The lock waits for requests that store tokens under this trust.
    row = required_row(TrustedIssuer.objects.select_for_update().filter(organization=locked, pk=issuer_id))
    target = row.as_target()
    people = end_families(TokenFamily.objects.filter(trusted_issuer=row))
    row.delete()
    record_admin(
        EventType.TRUSTED_ISSUER_REMOVED,
        org_id=locked.pk,
        actor=actor.as_actor(),
        target=target,
        metadata={"issuer": row.issuer, "people_with_tokens": people},
    )


@transaction.atomic
def _stored(actor: User, organization: Organization, wanted: Wanted) -> TrustedIssuer:
    locked = lock_for_change(organization, actor=actor, role=Role.OWNER)
    rows = TrustedIssuer.objects.filter(organization=locked)
    if rows.filter(issuer=wanted.issuer).exists():
        raise Conflict(sentence("Your organization already trusts this issuer."))
    require_quota(rows, settings.TRUSTED_ISSUERS_PER_ORGANIZATION, sentence("trusted identity providers"))
    facts = {
        "issuer": wanted.issuer,
        "jwks_url": wanted.jwks_url,
        "tenant": wanted.tenant,
        "algorithms": list(dict.fromkeys(wanted.algorithms)),
        "client_ids": list(dict.fromkeys(wanted.client_ids)),
    }
    row = TrustedIssuer.objects.create(organization=locked, created_by=actor, **facts)
    record_admin(
        EventType.TRUSTED_ISSUER_ADDED,
        org_id=locked.pk,
        actor=actor.as_actor(),
        target=row.as_target(),
        metadata=facts,
    )
    return row


def _faults(organization: Organization, wanted: Wanted) -> dict[str, list[str]]:
    faults: dict[str, list[str]] = {}
    if not _is_address(wanted.issuer, ISSUER_CHARACTERS):
        faults["issuer"] = [sentence("Enter the https address of the issuer, exactly as it appears in its tokens.")]
    if wanted.jwks_url and not _is_address(wanted.jwks_url, JWKS_URL_CHARACTERS):
        faults["jwks_url"] = [sentence("Enter the https address of the keys, or leave the field empty.")]
    if len(wanted.tenant) > ISSUER_CHARACTERS or not wanted.tenant.isprintable():
        faults["tenant"] = [
            sentence("Enter the tenant as it appears in the provider’s tokens, or leave the field empty.")
        ]
    if not wanted.algorithms or not set(wanted.algorithms) <= set(ALGORITHMS):
        faults["algorithms"] = [sentence("Choose from %(algorithms)s.", algorithms=", ".join(ALGORITHMS))]
    own = Client.objects.filter(organization=organization, client_id__in=wanted.client_ids)
    if own.count() < len(set(wanted.client_ids)):
        faults["client_ids"] = [sentence("Enter client IDs of your organization’s agents.")]
    return faults


def _is_address(url: str, most: int) -> bool:
    try:
        check_url(url, allow_private=settings.ALLOW_PRIVATE_ENDPOINTS, own_url=settings.BASE_URL)
    except (AddressRefused, ValueError):
        return False
    parts = urlsplit(url)
    return len(url) <= most and url.isascii() and url.isprintable() and " " not in url and not parts.fragment


def _faults_of_keys(organization: Organization, wanted: Wanted) -> dict[str, list[str]]:
    """Outside the transaction: the provider may take seconds."""
    name = "jwks_url" if wanted.jwks_url else "issuer"
    try:
        with issuer_keys.wait(organization.pk):
            found = issuer_keys.published_keys(wanted.jwks_url or issuer_keys.discovered_jwks_url(wanted.issuer))
    except KeysUnavailable as fault:
        return {name: [fault.reason]}
    if any(issuer_keys.usable_key(key, algorithm) for key in found for algorithm in wanted.algorithms):
        return {}
    return {name: [sentence("The issuer publishes no key for the chosen algorithms.")]}
