"""The overview's checklist: what it asks of whom, when a step counts as done, and when it goes."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse

from gateway.lib import clock
from oauth_ext.models import Client
from orgs.models import Invitation, Membership
from orgs.services.invitations import create_invitation
from tests.api.audit.rows import add_row
from tests.api.pages.conftest import Site, text
from tests.factories.tenant import connect

VENDOR, ACCOUNT, CLIENT, PEOPLE = (
    "Connect a vendor",
    "Create a service account",
    "Set up your client",
    "Invite people",
)


@pytest.fixture
def alone(site: Site) -> Site:
    """An organization with its owner alone and nothing set up; the other one has everything."""
    other, foreigner = site.cast.other_org, site.cast.user("other_owner")
    Membership.objects.filter(organization=site.cast.org).exclude(user=site.cast.user("owner")).delete()
    Membership.objects.create(organization=other, user=site.cast.user("member"))
    Client.objects.update(organization=other)
    connect(other, foreigner)
    create_invitation(actor=foreigner, organization=other)
    add_row(org_id=other.id, timestamp=clock.now())
    return site


def steps(site: Site, who: str = "owner") -> dict[str, bool]:
    """Each step of the checklist that this person sees, and whether it is ticked."""
    response = site.cast.client(who).get(site.path("orgs:overview"))
    found = {step.label: step.is_done for step in response.context["steps"]}
    heading = f"{sum(found.values())} of {len(found)} done"
    assert (heading in text(response)) is response.context["has_steps_left"]
    return found


def is_shown(site: Site, who: str = "owner") -> bool:
    return "Get started" in text(site.cast.client(who).get(site.path("orgs:overview")))


def test_a_new_organization_has_everything_before_it(alone: Site) -> None:
    assert steps(alone) == {VENDOR: False, ACCOUNT: False, CLIENT: False, PEOPLE: False}
    assert is_shown(alone)


def test_each_step_leads_where_it_is_done(alone: Site) -> None:
    page = text(alone.owner().get(alone.path("orgs:overview")))
    for route in (
        "credentials:connections",
        "oauth_pages:service-clients",
        "proxy_pages:setup",
        "orgs:invitations",
    ):
        assert f'<a href="{alone.path(route)}">' in page
        assert alone.owner().get(alone.path(route)).status_code == 200


def test_an_open_invitation_or_another_member_is_enough(alone: Site) -> None:
    invitation = create_invitation(actor=alone.cast.user("owner"), organization=alone.cast.org)
    assert steps(alone)[PEOPLE]
    Invitation.objects.filter(pk=invitation.pk).update(expires_at=clock.now())
    assert not steps(alone)[PEOPLE]
    Membership.objects.create(organization=alone.cast.org, user=alone.cast.user("stranger"))
    assert steps(alone)[PEOPLE]


def set_up(site: Site) -> None:
    """Everything but people."""
    connect(site.cast.org, site.cast.user("owner"))
    Client.objects.update(organization=site.cast.org)
    add_row(org_id=site.cast.org.id, timestamp=clock.now() - timedelta(days=30))


def test_who_works_alone_is_done_without_inviting(alone: Site) -> None:
    set_up(alone)
    assert steps(alone) == {VENDOR: True, ACCOUNT: True, CLIENT: True, PEOPLE: False}
    assert not is_shown(alone)


def test_a_day_without_calls_brings_it_not_back(alone: Site) -> None:
    set_up(alone)
    response = alone.owner().get(alone.path("orgs:overview"))
    assert response.context["calls_today"] == 0
    assert steps(alone)[CLIENT]


def test_a_member_sees_the_steps_that_members_can_open(site: Site) -> None:
    assert set(steps(site, "member")) == {VENDOR, CLIENT}
    assert set(steps(site, "admin")) == {VENDOR, ACCOUNT, CLIENT, PEOPLE}
    page = text(site.cast.client("member").get(site.path("orgs:overview")))
    assert reverse("orgs:invitations", args=[site.cast.org.id]) not in page
    assert reverse("oauth_pages:service-clients", args=[site.cast.org.id]) not in page
