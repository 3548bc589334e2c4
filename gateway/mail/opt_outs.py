"""The one rule of unsubscribing: an address ends an optional kind by a signed link, or its person on the profile."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

import structlog
from django.conf import settings
from django.core.signing import BadSignature, Signer
from django.utils.encoding import punycode

from gateway.lib import secrets
from gateway.lib.errors import NotFound
from gateway.mail.kinds import MailKind, kind_named, optional_kinds
from gateway.mail.models import OptOut

log = structlog.get_logger(__name__)
_SALT = "gateway.mail.unsubscribe"
# The worker does without the URL configuration, which loads every page.
UNSUBSCRIBE_PATH = "mail/unsubscribe/"


@dataclass(frozen=True, slots=True)
class Subscription:
    """One kind for one address, which is known by its digest; from one organization, or from all of them."""

    kind: MailKind
    digest: bytes
    organization_id: UUID | None = None

    @property
    def name(self) -> str:
        """Of the opt-out."""
        return self.kind.name if self.organization_id is None else f"{self.kind.name}.{self.organization_id.hex}"

    def end(self) -> None:
        OptOut.objects.get_or_create(address_sha256=self.digest, kind=self.name)

    def begin(self) -> None:
        OptOut.objects.filter(address_sha256=self.digest, kind=self.name).delete()


def digest_of(address: str) -> bytes:
    """Of the address as mail servers see it: equal for all spellings of its domain."""
    name, _, domain = address.rpartition("@")
    try:
        domain = punycode(domain)
    except UnicodeError:
        log.info("mail.domain_not_encoded")  # nor can a message to it be sent
    return secrets.sha256(f"{name}@{domain}".lower())


def subscription_to(kind: MailKind, address: str, organization_id: UUID | None = None) -> Subscription:
    """The one that a link in a message of this organization ends."""
    return Subscription(kind, digest_of(address), organization_id if kind.is_per_organization else None)


def unsubscribe_url(kind: MailKind, address: str, organization_id: UUID | None = None) -> str:
    """A link without the address in it. It does not expire."""
    subscription = subscription_to(kind, address, organization_id)
    token = Signer(salt=_SALT).sign(f"{subscription.name}:{subscription.digest.hex()}")
    return f"{settings.BASE_URL}/{UNSUBSCRIBE_PATH}{token}"


def subscription_of(token: str) -> Subscription:
    """Raises: NotFound for a token that we did not sign, or of a kind that is gone."""
    try:
        name, _, digest = Signer(salt=_SALT).unsign(token).partition(":")
    except BadSignature:
        raise NotFound from None
    kind_name, _, organization = name.partition(".")
    kind = kind_named(kind_name)
    if kind is None or not kind.is_optional:
        raise NotFound
    return Subscription(kind, bytes.fromhex(digest), UUID(organization) if organization else None)


def is_unwanted(kind: MailKind, address: str, organization_id: UUID | None = None) -> bool:
    """Security notices are always sent."""
    if not kind.is_optional:
        return False
    names = {kind.name, subscription_to(kind, address, organization_id).name}
    return OptOut.objects.filter(address_sha256=digest_of(address), kind__in=names).exists()


def unwanted_kinds(address: str) -> set[str]:
    """Names."""
    return set(OptOut.objects.filter(address_sha256=digest_of(address)).values_list("kind", flat=True))


def choose(address: str, wanted: Collection[str]) -> None:
    """The address gets these optional kinds, by name, and no others."""
    for kind in optional_kinds():
        subscription = Subscription(kind, digest_of(address))
        if kind.name in wanted:
            subscription.begin()
        else:
            subscription.end()
