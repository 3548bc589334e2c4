"""From a verified identity to a person."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction
from django.db.models import Q

from gateway.lib import clock
from gateway.lib.errors import Conflict, Invalid
from gateway.lib.text import NAME_MAX_CHARACTERS, clean_name
from orgs.errors import DeactivatedPerson
from orgs.models import Identity, User
from orgs.services.identity_sealing import seal_refresh_token

MAX_NAMESAKES = 50  # people with one address that are looked at; two are already ambiguous


def person_for_identity(*, issuer: str, sub: str, claims: Mapping[str, Any], refresh_token: str = "") -> User:
    """The person behind (issuer, sub); made, or linked by a verified e-mail address, at the first sign-in.

    `refresh_token` is the provider's, if it gave one: it is asked again with it.

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
    return _note_sign_in(identity, refresh_token)


@transaction.atomic
def _note_sign_in(identity: Identity, refresh_token: str) -> User:
    """The person as they are now. Under their lock: no token is left with a person who is deactivated meanwhile.

    Only renewed values are written: a renewed or resealed token may have come since the row was read.
    """
    person = User.objects.select_for_update(no_key=True).get(pk=identity.user_id)
    now = clock.now()
    changes: dict[str, Any] = {"last_used_at": now, "confirmed_at": now, "refused_at": None}
    if refresh_token and person.is_active:
        changes["refresh_key_id"], changes["refresh_sealed"] = seal_refresh_token(refresh_token, identity.pk)
    Identity.objects.filter(pk=identity.pk).update(**changes)
    return person


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

    Raises: Invalid for what is no address; Conflict when several people have it; DeactivatedPerson.   Spec: D47
    """
    try:
        validate_email(email)
    except ValidationError as fault:
        raise Invalid(fields={"email": [f"{email} is no e-mail address."]}) from fault
    # Without the provider's word an address is only a claim.
    known = Q(email_verified=True) | Q(identities=None)
    people = people_with_email(email, known)
    active = [person for person in people if person.is_active]
    if len(active) > 1:
        raise Conflict(f"Several people have the address {email}.")
    if people and not active:
        raise DeactivatedPerson(email, [person.pk for person in people])
    return active[0] if active else User.objects.create_user(email=email)


def people_with_email(email: str, *conditions: Q) -> list[User]:
    """All people with this address in any case of its letters, oldest first.

    The database folds letters of other alphabets too (the dotless i to I), so what it finds is compared again.
    """
    rows = User.objects.filter(*conditions, email__iexact=email).distinct().order_by("created_at", "pk")
    return [person for person in rows[:MAX_NAMESAKES] if person.email.lower() == email.lower()]


def _linkable(email: str) -> User | None:
    """The one person with this address and no identity (made by an operator before the first sign-in).

    Also a deactivated one: a person shut out before the first sign-in is not let in as a new one. An address beyond
    ASCII links no one: too many of its letters look like others.
    """
    if not email or not email.isascii():
        return None
    candidates = people_with_email(email, Q(identities=None))
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
    """Whether the provider vouches for the address: true, or "true" (Amazon Cognito and others send text).

    A provider whose addresses are all its own says nothing at all (Microsoft Entra ID): the operator says it instead.
    """
    word = claims.get("email_verified")
    if word is None:
        word = settings.OIDC_EMAILS_ARE_VERIFIED
    return (word is True or word == "true") and bool(claims.get("email"))


def _name(claim: object) -> str:
    """A name claim that keeps our rules for names, or nothing: the provider's oddities are not the person's fault."""
    if not isinstance(claim, str):
        return ""
    try:
        return clean_name(claim[:NAME_MAX_CHARACTERS], allow_empty=True)
    except ValueError:
        return ""
