"""The people every test knows: owner, admin and member of one organization, the owner of another, and a stranger."""

from __future__ import annotations

from dataclasses import dataclass

from django.test import Client as Browser

from orgs.models import Identity, Membership, Organization, User
from orgs.roles import Role

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

    def client(self, who: str) -> Browser:
        """A browser in which `who` is signed in; "nobody" is signed out."""
        browser = Browser()
        if who != "nobody":
            browser.force_login(self.people[who], backend="orgs.signin.backend.IdentityBackend")
        return browser


def make_person(name: str) -> User:
    """A person with an identity."""
    title = name.replace("_", " ").title()
    user = User.objects.create_user(email=f"{name}@example.com", email_verified=True, display_name=title)
    Identity.objects.create(user=user, issuer=ISSUER, sub=name)
    return user


def make_cast() -> Cast:
    """Two organizations and their people."""
    people = {name: make_person(name) for name in ("owner", "admin", "member", "other_owner", "stranger")}
    org = Organization.objects.create(name="Acme")
    other_org = Organization.objects.create(name="Globex")
    for name in ("owner", "admin", "member"):
        Membership.objects.create(organization=org, user=people[name], role=Role(name).value)
    Membership.objects.create(organization=other_org, user=people["other_owner"], role=Role.OWNER.value)
    return Cast(org, other_org, people)
