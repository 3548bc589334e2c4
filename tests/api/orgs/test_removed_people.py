"""A removal holds: who was removed comes back by an invitation that was made afterwards, and by no other. D162"""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection

from audit.actor import system
from audit.models import AdminAuditEntry
from orgs.errors import InvitationBeforeRemoval, InvitationNotFound
from orgs.models import Invitation, Membership, Organization, Removal, User
from orgs.services.identities import people_with_email
from orgs.services.invitation_mail import link_facts
from orgs.services.invitation_sealing import token_of
from orgs.services.invitations import accept_invitation, create_invitation
from orgs.services.members import leave_organization, remove_member
from tests.factories.cast import Cast
from tests.factories.races import refusals_at_once


def link(cast: Cast, actor: str = "owner", organization: Organization | None = None, **options: Any) -> str:
    invitation = create_invitation(
        actor=cast.user(actor), organization=organization or cast.org, **{"max_uses": 100, **options}
    )
    token = token_of(invitation)
    assert token
    return token


def remove(cast: Cast, who: str) -> None:
    remove_member(actor=cast.user("owner"), organization=cast.org, user_id=cast.user(who).pk)


def is_member(cast: Cast, who: str) -> bool:
    return Membership.objects.filter(organization=cast.org, user=cast.user(who)).exists()


@pytest.mark.parametrize("bound", ["", "member@example.com"])
def test_an_invitation_of_before_lets_nobody_back(cast: Cast, bound: str) -> None:
    token = link(cast, **({"email": bound, "max_uses": 1} if bound else {}))
    remove(cast, "member")
    with pytest.raises(InvitationBeforeRemoval):
        accept_invitation(user=cast.user("member"), token=token)
    assert not is_member(cast, "member")
    assert Invitation.objects.get().use_count == 0
    if not bound:
        assert not accept_invitation(user=cast.user("stranger"), token=token).already_member


def test_an_invitation_of_afterwards_does_and_the_old_one_still_does_not(cast: Cast) -> None:
    old = link(cast)
    remove(cast, "member")
    assert not accept_invitation(user=cast.user("member"), token=link(cast)).already_member
    leave_organization(actor=cast.user("member"), organization=cast.org)
    with pytest.raises(InvitationBeforeRemoval):
        accept_invitation(user=cast.user("member"), token=old)
    assert not accept_invitation(user=cast.user("member"), token=link(cast)).already_member


def test_the_removal_counts_in_its_organization_only(cast: Cast) -> None:
    elsewhere = link(cast, "other_owner", cast.other_org)
    remove(cast, "member")
    assert not accept_invitation(user=cast.user("member"), token=elsewhere).already_member


def test_leaving_by_oneself_stays_as_it_is(cast: Cast) -> None:
    token, own = link(cast), link(cast, "admin")
    leave_organization(actor=cast.user("member"), organization=cast.org)
    remove_member(actor=cast.user("admin"), organization=cast.org, user_id=cast.user("admin").pk)
    assert not Removal.objects.exists()
    assert not accept_invitation(user=cast.user("member"), token=token).already_member
    assert not accept_invitation(user=cast.user("admin"), token=own).already_member


def test_a_removed_admin_s_pending_invitations_end(cast: Cast) -> None:
    open_link, bound = link(cast, "admin"), link(cast, "admin", email="stranger@example.com", max_uses=1)
    others = link(cast)
    impact = cast.client("owner").get(f"/orgs/{cast.org.pk}/people/{cast.user('admin').pk}/remove")
    assert "2 pending invitations that they created" in impact.content.decode()
    remove(cast, "admin")
    for who, token in (("admin", open_link), ("other_owner", open_link), ("stranger", bound)):
        with pytest.raises(InvitationNotFound):
            accept_invitation(user=cast.user(who), token=token)
    assert not is_member(cast, "stranger")
    assert not accept_invitation(user=cast.user("other_owner"), token=others).already_member
    rows = AdminAuditEntry.objects.filter(event_type="invitation.revoked")
    assert [(row.org_id, row.actor_id) for row in rows] == [(cast.org.id, str(cast.user("owner").pk))] * 2


def test_invitations_of_a_deactivated_person_admit_nobody_meanwhile(cast: Cast) -> None:
    token = link(cast, "admin", email="stranger@example.com", max_uses=1)
    set_active = User.objects.filter(pk=cast.user("admin").pk).update
    set_active(is_active=False)
    with pytest.raises(InvitationNotFound):
        accept_invitation(user=cast.user("stranger"), token=token)
    assert link_facts({"invitation": str(Invitation.objects.get().pk), "inviter": "A", "organization": "B"}) is None
    set_active(is_active=True)
    assert not accept_invitation(user=cast.user("stranger"), token=token).already_member


def test_support_staff_remove_for_good_too(cast: Cast) -> None:
    token = link(cast)
    remove_member(actor=system("test"), organization=cast.org, user_id=cast.user("member").pk)
    with pytest.raises(InvitationBeforeRemoval):
        accept_invitation(user=cast.user("member"), token=token)


def test_the_page_says_what_to_do(cast: Cast) -> None:
    token = link(cast)
    remove(cast, "member")
    page = cast.client("member").post(f"/invite/{token}", HTTP_ACCEPT="text/html")
    assert page.status_code == 403
    assert "Ask for a new one." in page.content.decode()
    answer = cast.client("member").post(f"/invite/{token}")
    assert (answer.status_code, answer.json()["error"]) == (403, "invitation_before_removal")


def test_a_click_at_the_moment_of_the_removal_does_not_undo_it(committed_cast: Cast) -> None:
    """Twenty clicks while the removal runs: a click before it finds a member, a click after it is refused."""
    cast = committed_cast
    token = link(cast)
    clicks = [lambda: accept_invitation(user=cast.user("member"), token=token)] * 10
    codes = refusals_at_once(*clicks, lambda: remove(cast, "member"), *clicks)
    assert set(codes) <= {"", "invitation_before_removal"}
    assert not is_member(cast, "member")
    assert Invitation.objects.get().use_count == 0


@pytest.mark.skipif("connection.vendor != 'postgresql'")
def test_an_address_is_found_by_an_index(db: None) -> None:
    User.objects.create_user(email="Ana@example.com")
    assert [row.email for row in people_with_email("aNA@example.com")] == ["Ana@example.com"]
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        plan = User.objects.filter(email__iexact="ana@example.com").explain()
    assert "user_by_email_upper" in plan
