"""A person's consents and tokens of an organization end with the membership; a new one brings none back."""

from __future__ import annotations

from datetime import timedelta

import pytest

from gateway.lib import clock
from oauth_ext.models import Decision, DeviceGrant, Grant, RememberedConsent
from oauth_ext.services.devices import decide_device, waiting_device
from orgs.models import Membership
from orgs.services.members import remove_member
from tests.api.oauth_ext.conftest import Service
from tests.api.oauth_ext.devices import start_device
from tests.api.oauth_ext.flow import Flow, answer_of, make_flow
from tests.factories.cast import Cast


@pytest.fixture
def flow(cast: Cast) -> Flow:
    return make_flow(cast)


def remember(flow: Flow) -> None:
    """The person allows the client, and is not asked again."""
    assert "code" in answer_of(flow.answer(flow.ask()))
    assert "code" in answer_of(flow.authorize())


def leave(cast: Cast) -> None:
    """The owner removes the member."""
    remove_member(actor=cast.user("owner"), organization=cast.org, user_id=cast.user("member").pk)


def join(cast: Cast) -> Membership:
    """The member is invited again."""
    return Membership.objects.create(organization=cast.org, user=cast.user("member"))


def test_a_remembered_consent_ends_with_the_membership(cast: Cast, flow: Flow) -> None:
    other = make_flow(cast, "owner")
    remember(flow)
    remember(other)
    leave(cast)
    assert list(RememberedConsent.objects.values_list("user", flat=True)) == [cast.user("owner").pk]
    assert not Grant.objects.filter(user=cast.user("member")).exists()
    join(cast)
    flow.ask()
    assert "code" in answer_of(other.authorize())


def test_a_consent_of_an_earlier_membership_is_none(cast: Cast, flow: Flow) -> None:
    """Also when the consent and the removal happen at the same time."""
    remember(flow)
    Membership.objects.filter(user=cast.user("member")).update(joined_at=clock.now() + timedelta(seconds=1))
    flow.ask()


def test_whoever_was_removed_meanwhile_decides_about_no_device(cast: Cast, service: Service) -> None:
    device = start_device(service)
    member = cast.user("member")
    shown = waiting_device(actor=member, typed=device.user_code, address="192.0.2.1")
    leave(cast)
    for decision in Decision:
        assert not decide_device(actor=member, device=shown, decision=decision)
    assert device.row.decision == ""
    assert decide_device(actor=cast.user("admin"), device=shown, decision=Decision.APPROVED)
    assert DeviceGrant.objects.get().decided_by == cast.user("admin")
