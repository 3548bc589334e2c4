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
    assert "Make Member owner and step down" in page


@pytest.mark.parametrize("role", ["admin", "member"])
def test_the_typed_name_hands_over(site: Site, role: str) -> None:
    answer = site.owner().post(path(site), {"typed_name": "Member", "role": role}, follow=True)
    assert notices(answer) == [f"Member is an owner now. You are {'an admin' if role == 'admin' else 'a member'}."]
    assert (role_of(site, "owner"), role_of(site, "member")) == (role, "owner")


def test_anything_else_changes_nothing(site: Site) -> None:
    for form in ({"role": "admin"}, {"typed_name": "Ana", "role": "admin"}, {"typed_name": "Member", "role": "owner"}):
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
