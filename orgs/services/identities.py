"""From a verified identity to a person."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction

from gateway.lib import clock
from gateway.lib.errors import Conflict, Invalid
from gateway.lib.text import NAME_MAX_CHARACTERS, clean_name
from orgs.models import Identity, User


def person_for_identity(*, issuer: str, sub: str, claims: Mapping[str, Any]) -> User:
    """The person behind (issuer, sub); made, or linked by a verified e-mail address, at the first sign-in.

    `claims` are verified ID token and userinfo claims. An address links only when the provider vouches for it and the
    person who has it owns no identity yet; anything else makes a new person. At every sign-in the person has the
    address that the provider vouches for, or one that nobody does.   Spec: D47
    """
    identity = Identity.objects.select_related("user").filter(issuer=issuer, sub=sub).first()
    if identity is None:
        try:
            identity = _first_sign_in(issuer=issuer, sub=sub, claims=claims)
        except IntegrityError:  # the same person signed in twice at once; the other one made the row
            identity = Identity.objects.select_related("user").get(issuer=issuer, sub=sub)
    _note_email(identity.user, claims)
    Identity.objects.filter(pk=identity.pk).update(last_used_at=clock.now())
    return identity.user


@transaction.atomic
def _first_sign_in(*, issuer: str, sub: str, claims: Mapping[str, Any]) -> Identity:
    email = _email(claims)
    user = _linkable(email) if _is_vouched_for(claims) else None
    if user is None:
        user = User.objects.create_user(
            email=email,
            first_name=_name(claims.get("given_name")),
            last_name=_name(claims.get("family_name")),
            display_name="" if claims.get("given_name") else _name(claims.get("name")),
        )
    return Identity.objects.create(user=user, issuer=issuer, sub=sub)


def person_with_email(email: str) -> User:
    """For operators: the one person with this address, made when there is none; they are linked at first sign-in.

    Raises: Invalid for what is no address; Conflict when several people have it.   Spec: D47
    """
    try:
        validate_email(email)
    except ValidationError as fault:
        raise Invalid(fields={"email": [f"{email} is no e-mail address."]}) from fault
    found = list(User.objects.filter(email__iexact=email, is_active=True)[:2])
    if len(found) > 1:
        raise Conflict(f"Several people have the address {email}.")
    return found[0] if found else User.objects.create_user(email=email)


def _linkable(email: str) -> User | None:
    """The one person with this address and no identity (made by an operator before the first sign-in)."""
    if not email:
        return None
    candidates = list(User.objects.filter(email__iexact=email, identities=None, is_active=True)[:2])
    if len(candidates) != 1:
        return None
    # Two identities with the same address at once: the second one to get here finds the person taken.
    held = User.objects.select_for_update().get(pk=candidates[0].pk)
    return None if held.identities.exists() else held


def _note_email(user: User, claims: Mapping[str, Any]) -> None:
    email, is_vouched_for = _email(claims), _is_vouched_for(claims)
    if not is_vouched_for and email.lower() != user.email.lower():
        email = user.email  # the one we have stays, but nobody vouches for it any more
    if (user.email, user.email_verified) != (email, is_vouched_for):
        user.email, user.email_verified = email, is_vouched_for
        user.save(update_fields=["email", "email_verified"])


def _email(claims: Mapping[str, Any]) -> str:
    return User.objects.normalize_email(str(claims.get("email") or "")[:254])


def _is_vouched_for(claims: Mapping[str, Any]) -> bool:
    return claims.get("email_verified") is True and bool(claims.get("email"))


def _name(claim: object) -> str:
    """A name claim that keeps our rules for names, or nothing: the provider's oddities are not the person's fault."""
    if not isinstance(claim, str):
        return ""
    try:
        return clean_name(claim[:NAME_MAX_CHARACTERS], allow_empty=True)
    except ValueError:
        return ""
