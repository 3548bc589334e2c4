"""The one rule of unsubscribing: an address ends an optional kind by a signed link, or its person on the profile."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from django.conf import settings
from django.core.signing import BadSignature, Signer

from gateway.lib import secrets
from gateway.lib.errors import NotFound
from gateway.mail.kinds import MailKind, kind_named, optional_kinds
from gateway.mail.models import OptOut

_SALT = "gateway.mail.unsubscribe"
# The worker does without the URL configuration, which loads every page.
UNSUBSCRIBE_PATH = "mail/unsubscribe/"


@dataclass(frozen=True, slots=True)
class Subscription:
    """One kind for one address, which is known by its digest."""

    kind: MailKind
    digest: bytes

    def end(self) -> None:
        OptOut.objects.get_or_create(address_sha256=self.digest, kind=self.kind.name)

    def begin(self) -> None:
        OptOut.objects.filter(address_sha256=self.digest, kind=self.kind.name).delete()


def digest_of(address: str) -> bytes:
    return secrets.sha256(address.lower())


def unsubscribe_url(kind: MailKind, address: str) -> str:
    """A link without the address in it. It does not expire."""
    token = Signer(salt=_SALT).sign(f"{kind.name}:{digest_of(address).hex()}")
    return f"{settings.BASE_URL}/{UNSUBSCRIBE_PATH}{token}"


def subscription_of(token: str) -> Subscription:
    """Raises: NotFound for a token that we did not sign, or of a kind that is gone."""
    try:
        name, _, digest = Signer(salt=_SALT).unsign(token).partition(":")
    except BadSignature:
        raise NotFound from None
    kind = kind_named(name)
    if kind is None or not kind.is_optional:
        raise NotFound
    return Subscription(kind, bytes.fromhex(digest))


def is_unwanted(kind: MailKind, address: str) -> bool:
    """Security notices are always sent."""
    return kind.is_optional and OptOut.objects.filter(address_sha256=digest_of(address), kind=kind.name).exists()


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
