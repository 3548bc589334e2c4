"""Support staff end things in organizations that are not theirs: by the services, with a row that names them."""

from __future__ import annotations

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import Permission
from django.test import Client as Browser

from audit.models import AdminAuditEntry
from billing import entitlements
from billing.models import Subscription
from orgs.models import Membership, ServerAccess, Team, User
from orgs.services.invitations import create_invitation
from tests.api.support.people import REASON, act, reasons
from tests.factories.cast import Cast, make_person
from tests.factories.catalog import load_vendors

BACKEND = "orgs.signin.backend.IdentityBackend"


@pytest.fixture
def person(cast: Cast) -> User:
    """A superuser of the admin, member of nothing."""
    found = make_person("support")
    found.is_staff = found.is_superuser = True
    found.save()
    return found


@pytest.fixture
def staff(person: User) -> Browser:
    browser = Browser()
    browser.force_login(person, backend=BACKEND)
    return browser


def entry(cast: Cast, event: str) -> AdminAuditEntry:
    """The only row of this kind, in the organization's own log, under the staff member's name."""
    row = AdminAuditEntry.objects.get(event_type=event)
    assert row.org_id == cast.org.id
    assert row.actor_label == "Support (support staff)"
    assert row.actor_id == str(User.objects.get(display_name="Support").id)
    return row


def test_a_member_is_removed(cast: Cast, staff: Browser) -> None:
    row = Membership.objects.get(user=cast.user("member"))
    removed = act(staff, "remove-member", row.user, cast.org)
    assert removed.status_code == 302
    assert not Membership.objects.filter(user=cast.user("member")).exists()
    assert entry(cast, "member.removed").target_id == str(cast.user("member").id)
    assert reasons(cast.org) == [("Support (support staff)", "Remove member", REASON)]
    assert reasons(cast.other_org) == []


def test_the_last_owner_stays(cast: Cast, staff: Browser) -> None:
    owner = Membership.objects.get(user=cast.user("owner"))
    refused = act(staff, "remove-member", owner.user, cast.org)
    assert refused.status_code == 409
    assert "Every organization needs an owner." in refused.content.decode()
    assert "`manage.py add_member --role owner`" in refused.content.decode()
    assert reasons(cast.org) == []
    assert act(staff, "remove-member", cast.user("admin"), cast.org).status_code == 302
    assert Membership.objects.filter(pk=owner.pk).exists()
    assert entry(cast, "member.removed").target_id == str(cast.user("admin").id)


def test_an_invitation_is_revoked_once(cast: Cast, staff: Browser) -> None:
    row = create_invitation(actor=cast.user("owner"), organization=cast.org)
    kept = create_invitation(actor=cast.user("other_owner"), organization=cast.other_org)
    assert act(staff, "revoke-invitation", row, cast.org).status_code == 302
    assert act(staff, "revoke-invitation", row, cast.org).status_code == 404
    assert act(staff, "revoke-invitation", kept, cast.org).status_code == 404
    row.refresh_from_db()
    kept.refresh_from_db()
    assert row.revoked_at is not None
    assert kept.revoked_at is None
    assert entry(cast, "invitation.revoked").target_id == str(row.pk)


def test_server_access_of_members_and_teams_is_revoked(cast: Cast, staff: Browser) -> None:
    load_vendors("acme")
    team = Team.objects.create(organization=cast.org, name="Ops")
    rows = [
        ServerAccess.objects.create(organization=cast.org, team=team, vendor="acme"),
        ServerAccess.objects.create(
            organization=cast.org, membership=Membership.objects.get(user=cast.user("member")), vendor="acme"
        ),
    ]
    assert [act(staff, "revoke-access", row, cast.org).status_code for row in rows] == [302, 302]
    assert not ServerAccess.objects.exists()
    found = AdminAuditEntry.objects.filter(event_type="server_access.revoked", org_id=cast.org.id)
    assert {row.target_label for row in found} == {"Ops", "Member"}
    assert {row.actor_label for row in found} == {"Support (support staff)"}


def test_a_subscription_is_set_by_hand(cast: Cast, staff: Browser, settings: LazySettings) -> None:
    settings.BILLING_MODE = "manual"
    assert act(staff, "activate-plan", cast.org, cast.org).status_code == 302
    assert entitlements.is_active(cast.org)
    assert not entitlements.is_active(cast.other_org)
    entry(cast, "billing.activated")
    Subscription.objects.update(service_clients=False)
    assert act(staff, "cancel-plan", cast.org, cast.org).status_code == 302
    assert not entitlements.is_active(cast.org)
    assert Subscription.objects.get().service_clients is False
    entry(cast, "billing.lapsed")


@pytest.mark.parametrize("mode", ["disabled", "provider"])
def test_a_provider_is_not_overruled(cast: Cast, staff: Browser, settings: LazySettings, mode: str) -> None:
    settings.BILLING_MODE = mode
    assert act(staff, "activate-plan", cast.org, cast.org).status_code == 404
    assert not Subscription.objects.exists()
    assert not AdminAuditEntry.objects.exists()


def test_staff_who_may_only_look_end_nothing(cast: Cast, person: User, staff: Browser, settings: LazySettings) -> None:
    settings.BILLING_MODE = "manual"
    invitation = create_invitation(actor=cast.user("owner"), organization=cast.org)
    member = Membership.objects.get(user=cast.user("member"))
    access = ServerAccess.objects.create(organization=cast.org, membership=member, vendor="acme")
    AdminAuditEntry.objects.all().delete()
    person.is_superuser = False
    person.save()
    person.user_permissions.set(Permission.objects.filter(codename="view_organization"))
    for action, row in (
        ("remove-member", member.user),
        ("revoke-invitation", invitation),
        ("revoke-access", access),
        ("activate-plan", cast.org),
    ):
        assert act(staff, action, row, cast.org).status_code == 403
    for row in (invitation, member, access):
        row.refresh_from_db()
    assert invitation.revoked_at is None
    assert not Subscription.objects.exists()
    assert not AdminAuditEntry.objects.exists()


@pytest.mark.parametrize("who", ["owner", "member", "nobody"])
def test_nobody_else_comes_near(cast: Cast, who: str) -> None:
    member = Membership.objects.get(user=cast.user("member"))
    assert act(cast.client(who), "remove-member", member.user, cast.org).status_code == 302
    member.refresh_from_db()
    assert not AdminAuditEntry.objects.exists()
