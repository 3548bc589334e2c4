"""Handing an organization over on its page: the name is typed, and both roles change. Spec: D154"""

from __future__ import annotations

import pytest

from orgs.models import Membership, User
from tests.api.pages.conftest import Site, notices, text


def path(site: Site, who: str = "member") -> str:
    return site.path("orgs:member-owner", str(site.cast.user(who).id))


def role_of(site: Site, who: str) -> str:
    return Membership.objects.get(organization=site.cast.org, user=site.cast.user(who)).role


def test_the_page_of_a_role_leads_here(site: Site) -> None:
    role_page = site.owner().get(site.path("orgs:member-role", str(site.cast.user("member").id)))
    assert f'href="{path(site)}"' in text(role_page)
    page = text(site.owner().get(path(site)))
    assert "Make Member an owner of Acme?" in page


@pytest.mark.parametrize("role", ["admin", "member"])
def test_the_typed_name_hands_over(site: Site, role: str) -> None:
    answer = site.owner().post(path(site), {"typed_name": "Member", "role": role}, follow=True)
    article = "an" if role == "admin" else "a"
    assert notices(answer) == [f"Member is now an owner. You are now {article} {role}."]
    assert (role_of(site, "owner"), role_of(site, "member")) == (role, "owner")


def test_a_second_owner_is_made_while_the_first_stays(site: Site) -> None:
    assert 'value="owner" checked' in text(site.owner().get(path(site)))
    answer = site.owner().post(path(site), {"typed_name": "Member", "role": "owner"}, follow=True)
    assert notices(answer) == ["Member is now an owner. You are still an owner."]
    assert (role_of(site, "owner"), role_of(site, "member")) == ("owner", "owner")
    assert role_of(site, "admin") == "admin"


def test_an_owner_steps_down_on_their_own_settings(site: Site) -> None:
    own, step_down = site.path("orgs:member-role", str(site.cast.user("owner").id)), site.path("orgs:step-down")
    assert "only owner of Acme" in text(site.owner().get(own))
    refused = site.owner().post(step_down, {"role": "admin"})
    assert refused.status_code == 409
    assert "Make someone else an owner first" in text(refused)
    site.owner().post(path(site), {"typed_name": "Member", "role": "owner"})
    assert f'action="{step_down}"' in text(site.owner().get(own))
    assert site.owner().post(step_down, {"role": "owner"}).status_code == 422
    answer = site.owner().post(step_down, {"role": "member"}, follow=True)
    assert notices(answer) == ["You are no longer an owner. You are now a member."]
    assert (role_of(site, "owner"), role_of(site, "member")) == ("member", "owner")


@pytest.mark.parametrize(("who", "status"), [("admin", 403), ("member", 403), ("other_owner", 404), ("nobody", 302)])
def test_only_an_owner_opens_the_step_down_page(site: Site, who: str, status: int) -> None:
    for send in (site.cast.client(who).get, site.cast.client(who).post):
        assert send(site.path("orgs:step-down")).status_code == status


def test_the_only_owner_who_leaves_is_told_what_to_do(site: Site) -> None:
    page = text(site.owner().get(site.path("orgs:leave")))
    assert "Make someone else an owner first" in page
    assert f'href="{site.path("orgs:members")}">Choose a new owner' in page


def test_anything_else_changes_nothing(site: Site) -> None:
    for form in ({"role": "admin"}, {"typed_name": "Ana", "role": "admin"}, {"typed_name": "Member", "role": "boss"}):
        answer = site.owner().post(path(site), form)
        assert answer.status_code == 422
        assert 'class="errorlist"' in text(answer)
    User.objects.filter(pk=site.cast.user("admin").pk).update(is_active=False)
    refused = site.owner().post(path(site, "admin"), {"typed_name": "Admin", "role": "admin"})
    assert refused.status_code == 409
    assert "deactivated" in text(refused)
    assert site.owner().post(path(site, "owner"), {"typed_name": "Owner", "role": "admin"}).status_code == 403
    assert site.owner().post(path(site, "other_owner"), {"typed_name": "x"}).status_code == 404
    for who, status in (("admin", 403), ("member", 403), ("other_owner", 404), ("nobody", 302)):
        if who != "admin":  # the admin was deactivated above
            assert site.cast.client(who).post(path(site), {"typed_name": "Member"}).status_code == status
    assert (role_of(site, "owner"), role_of(site, "member")) == ("owner", "member")
