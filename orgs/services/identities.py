"""From a verified identity to a person."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction
from django.db.models import Q

from gateway.coordination import epochs
from gateway.lib import clock
from gateway.lib.errors import Conflict, Invalid
from gateway.lib.sentences import sentence
from gateway.lib.text import NAME_MAX_CHARACTERS, clean_name
from orgs.errors import DeactivatedPerson
from orgs.models import Identity, User
from orgs.services.identity_sealing import seal_refresh_token

# People with one address that are read; two are ambiguous already.
MAX_NAMESAKES = 50


def person_for_identity(*, issuer: str, sub: str, claims: Mapping[str, Any], refresh_token: str = "") -> User:
    """The person of (issuer, sub); created, or linked by a verified e-mail address, at the first sign-in. Spec: D47

    `claims`: verified ID token and userinfo claims. `refresh_token`: the provider's, used later to confirm the person.
    """
    identity = Identity.objects.select_related("user").filter(issuer=issuer, sub=sub).first()
    if identity is None:
        try:
            identity = _first_sign_in(issuer=issuer, sub=sub, claims=claims)
        # Two first sign-ins at the same time: the other one created the row.
        except IntegrityError:
            identity = Identity.objects.select_related("user").get(issuer=issuer, sub=sub)
    _note_email(identity.user, claims)
    return _note_sign_in(identity, refresh_token)


@transaction.atomic
def _note_sign_in(identity: Identity, refresh_token: str) -> User:
    # The lock keeps a person who is being deactivated from getting a refresh token.
    person = User.objects.select_for_update(no_key=True).get(pk=identity.user_id)
    now = clock.now()
    changes: dict[str, Any] = {"last_used_at": now, "confirmed_at": now, "refused_at": None}
    if refresh_token and person.is_active:
        changes["refresh_key_id"], changes["refresh_sealed"] = seal_refresh_token(refresh_token, identity.pk)
    # Only new values are written: the token may have been renewed or sealed again since the row was read.
    Identity.objects.filter(pk=identity.pk).update(**changes)
    return person


@transaction.atomic
def _first_sign_in(*, issuer: str, sub: str, claims: Mapping[str, Any]) -> Identity:
    email = _email(claims)
    # An address links only if the provider verified it and the person with it has no identity yet.
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
    """For operators: the one person with this address, created if nobody signs in with it. Spec: D47

    Raises: Invalid for a malformed address; Conflict if several people have it, or if somebody signs in with it whom
    the identity provider does not vouch for: that person may be the one who is meant, or a thief; DeactivatedPerson.
    """
    try:
        validate_email(email)
    except ValidationError as fault:
        raise Invalid(fields={"email": [sentence("%(email)s isn’t an email address.", email=email)]}) from fault
    # An address that the provider has not verified is only a claim.
    known = Q(email_verified=True) | Q(identities=None)
    people = people_with_email(email, known)
    active = [person for person in people if person.is_active]
    if len(active) > 1:
        raise Conflict(sentence("Several people have the address %(email)s.", email=email))
    if people and not active:
        raise DeactivatedPerson(email, [person.pk for person in people])
    return active[0] if active else _new_person(email)


def _new_person(email: str) -> User:
    claimants = [f"{person.pk} ({person.name})" for person in people_with_email(email) if person.is_active]
    if claimants:
        raise Conflict(
            sentence(
                "Someone already signs in with the address %(email)s, and the identity provider doesn’t vouch for"
                " it: %(people)s. Give the person’s ID instead of the address.",
                email=email,
                people=", ".join(claimants),
            )
        )
    return User.objects.create_user(email=email)


def people_with_email(email: str, *conditions: Q) -> list[User]:
    """People with this address, letter case ignored, oldest first."""
    # The database also folds letters of other alphabets (dotless i to I), so its rows are compared again.
    rows = User.objects.filter(*conditions, email__iexact=email).distinct().order_by("created_at", "pk")
    return [person for person in rows[:MAX_NAMESAKES] if person.email.lower() == email.lower()]


def _linkable(email: str) -> User | None:
    """The one person with this address and without an identity, deactivated ones included."""
    # Beyond ASCII many letters look alike, so such an address links no one.
    if not email or not email.isascii():
        return None
    # Includes deactivated people, so that they do not return as new ones at their first sign-in.
    candidates = people_with_email(email, Q(identities=None))
    if len(candidates) != 1:
        return None
    # Two identities with one address at the same time: the second one finds the person linked.
    held = User.objects.select_for_update().get(pk=candidates[0].pk)
    return None if held.identities.exists() else held


@transaction.atomic
def _note_email(user: User, claims: Mapping[str, Any]) -> None:
    email, is_vouched_for = _email(claims), _is_vouched_for(claims)
    if not is_vouched_for and email.lower() != user.email.lower():
        # The stored address stays, and counts as unverified.
        email = user.email
    if (user.email, user.email_verified) != (email, is_vouched_for):
        user.email, user.email_verified = email, is_vouched_for
        user.save(update_fields=["email", "email_verified"])
        epochs.bump_on_commit(epochs.subject(str(user.id)))


def _email(claims: Mapping[str, Any]) -> str:
    return User.objects.normalize_email(str(claims.get("email") or "")[:254])


def _is_vouched_for(claims: Mapping[str, Any]) -> bool:
    word = claims.get("email_verified")
    # Some providers omit the claim because all addresses are their own (Microsoft Entra ID): a setting answers.
    if word is None:
        word = settings.OIDC_EMAILS_ARE_VERIFIED
    # Amazon Cognito and others send the text "true".
    return (word is True or word == "true") and bool(claims.get("email"))


def _name(claim: object) -> str:
    """A valid name, or "" if the claim breaks our rules for names."""
    if not isinstance(claim, str):
        return ""
    try:
        return clean_name(claim[:NAME_MAX_CHARACTERS], allow_empty=True)
    except ValueError:
        return ""
