"""The people every test knows: owner, admin and member of one organization, the owner of another, and a stranger."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.db import transaction
from django.test import Client as Browser

from gateway.web.session_use import SessionUse
from gateway.web.sessions import SessionStore, key_of
from orgs.models import Identity, Membership, Organization, User
from orgs.roles import Role
from orgs.signin.session_confirmation import note_confirmation

ISSUER = "https://idp.example"


@dataclass
class Cast:
    """`org` has owner, admin and member; `other_org` has other_owner; stranger belongs nowhere."""

    org: Organization
    other_org: Organization
    people: dict[str, User]

    def user(self, who: str) -> User:
        """The person called `who`."""
        return self.people[who]

    def client(self, who: str, *, is_noted: bool = True) -> Browser:
        """A browser in which `who` is signed in; "nobody" is signed out. `is_noted`: its use was noted just now."""
        browser = Browser()
        if who != "nobody":
            key = signed_in_session(self.people[who])
            browser.cookies[settings.SESSION_COOKIE_NAME] = key
            if is_noted:
                SessionUse.claim(key_of(SessionStore(key)))
        return browser


def signed_in_session(user: User) -> str:
    """The key of a session as a sign-in leaves it, in one statement. `force_login` would take 15."""
    session = SessionStore()
    session.update(
        {
            SESSION_KEY: str(user.pk),
            BACKEND_SESSION_KEY: "orgs.signin.backend.IdentityBackend",
            HASH_SESSION_KEY: user.get_session_auth_hash(),
        }
    )
    note_confirmation(session)
    session._session_key = secrets.token_hex(16)  # Django would ask first whether there is such a session
    session.create_model_instance(dict(session.items())).save(force_insert=True)
    return session._session_key


def make_people(*names: str) -> dict[str, User]:
    """Persons with an identity each, by name."""
    people = {name: _person(name) for name in names}
    User.objects.bulk_create(people.values())
    Identity.objects.bulk_create(Identity(user=user, issuer=ISSUER, sub=name) for name, user in people.items())
    return people


def make_person(name: str) -> User:
    """A person with an identity."""
    return make_people(name)[name]


def _person(name: str) -> User:
    title = name.replace("_", " ").title()
    user = User(email=f"{name}@example.com", email_verified=True, display_name=title)
    user.set_unusable_password()
    return user


@transaction.atomic(savepoint=False)
def make_cast() -> Cast:
    """Two organizations and their people."""
    people = make_people("owner", "admin", "member", "other_owner", "stranger")
    org, other_org = Organization.objects.bulk_create([Organization(name="Acme"), Organization(name="Globex")])
    roles = {name: Membership(organization=org, user=people[name], role=Role(name)) for name in reversed(Role)}
    roles["other_owner"] = Membership(organization=other_org, user=people["other_owner"], role=Role.OWNER)
    Membership.objects.bulk_create(roles.values())
    return Cast(org, other_org, people)
