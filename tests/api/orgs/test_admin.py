"""Support staff see people and organizations, and change none of it."""

from __future__ import annotations

import pytest
from django.contrib import admin
from django.test import Client as Browser
from django.urls import reverse

from billing.models import ProviderCancellation, ProviderEvent, Subscription
from gateway.lib import clock
from orgs.models import (
    AccessRequest,
    Alert,
    AlertMessage,
    AlertSettings,
    Identity,
    Invitation,
    ItemAllowlist,
    JoinRequest,
    KnownTool,
    MailDomain,
    ManagementToken,
    Membership,
    Organization,
    Removal,
    ServerAccess,
    Team,
    TeamMembership,
    ToolAllowlist,
    ToolSnapshot,
    User,
)
from orgs.services.invitation_sealing import token_of
from orgs.services.invitations import create_invitation
from orgs.services.management_tokens import create_token
from tests.factories.cast import Cast, make_person

MODELS = [
    AccessRequest,
    Alert,
    AlertMessage,
    AlertSettings,
    Identity,
    Invitation,
    ItemAllowlist,
    JoinRequest,
    KnownTool,
    MailDomain,
    ManagementToken,
    Membership,
    Organization,
    ProviderCancellation,
    ProviderEvent,
    Removal,
    ServerAccess,
    Subscription,
    Team,
    TeamMembership,
    ToolAllowlist,
    ToolSnapshot,
    User,
]


@pytest.fixture
def staff(cast: Cast) -> Browser:
    person = make_person("staff")
    person.is_staff = person.is_superuser = True
    person.save()
    browser = Browser()
    browser.force_login(person, backend="orgs.signin.backend.IdentityBackend")
    return browser


@pytest.fixture
def rows(cast: Cast) -> dict[type, object]:
    member = Membership.objects.get(user=cast.user("member"))
    team = Team.objects.create(organization=cast.org, name="Ops")
    return {
        AccessRequest: AccessRequest.objects.create(organization=cast.org, membership=member, vendor="acme"),
        Alert: Alert.objects.create(
            organization=cast.org, kind="vendor_down", cause="acme", label="Acme", began_at=clock.now()
        ),
        AlertMessage: AlertMessage.objects.create(organization=cast.org, moment="test", began_at=clock.now()),
        AlertSettings: AlertSettings.objects.create(organization=cast.org),
        Identity: Identity.objects.first(),
        Invitation: create_invitation(actor=cast.user("owner"), organization=cast.org),
        JoinRequest: JoinRequest.objects.create(organization=cast.org, user=cast.user("stranger")),
        MailDomain: MailDomain.objects.create(organization=cast.org, domain="acme.example"),
        KnownTool: KnownTool.objects.create(
            organization=cast.org, vendor="acme", tool="t", seen_sha256=b"1", approved_sha256=b""
        ),
        ManagementToken: create_token(actor=cast.user("owner"), organization=cast.org, name="acme", scope="read").row,
        Membership: member,
        Organization: cast.org,
        ProviderCancellation: ProviderCancellation.objects.create(customer_id="cus_0", organization_id=cast.org.id),
        ProviderEvent: ProviderEvent.objects.create(id="evt_1", kind="invoice.paid", created=clock.now()),
        Removal: Removal.objects.create(organization=cast.org, user=cast.user("stranger")),
        ServerAccess: ServerAccess.objects.create(organization=cast.org, team=team, vendor="acme"),
        Subscription: Subscription.objects.create(organization=cast.org, status="active"),
        Team: team,
        TeamMembership: TeamMembership.objects.create(team=team, membership=member),
        ToolAllowlist: ToolAllowlist.objects.create(organization=cast.org, vendor="acme", role="member", tools=["t"]),
        ItemAllowlist: ItemAllowlist.objects.create(
            organization=cast.org, vendor="acme", role="member", kind="prompts", entries=["p"]
        ),
        ToolSnapshot: ToolSnapshot.objects.create(organization=cast.org, vendor="acme"),
        User: cast.user("owner"),
    }


@pytest.mark.parametrize("model", MODELS)
def test_staff_look_and_search_and_change_nothing(staff: Browser, rows: dict[type, object], model: type) -> None:
    row = rows[model]
    options = model._meta  # type: ignore[attr-defined]
    name = f"admin:{options.app_label}_{options.model_name}"
    listed = staff.get(reverse(f"{name}_changelist"), {"q": "acme"})
    assert listed.status_code == 200
    detail = reverse(f"{name}_change", args=[row.pk])  # type: ignore[attr-defined]
    page = staff.get(detail)
    assert page.status_code == 200
    token = token_of(rows[Invitation])  # type: ignore[arg-type]
    assert token not in page.content.decode() + listed.content.decode()
    assert staff.post(detail, {"name": "Mine"}).status_code == 403
    assert staff.get(reverse(f"{name}_add")).status_code == 403
    assert staff.post(reverse(f"{name}_delete", args=[row.pk])).status_code == 403  # type: ignore[attr-defined]


def test_every_model_of_ours_is_registered_here() -> None:
    ours = {model for model in admin.site._registry if model._meta.app_label in {"orgs", "billing"}}
    assert ours == set(MODELS)


def test_others_are_sent_away(cast: Cast) -> None:
    for who in ("owner", "nobody"):
        assert cast.client(who).get(reverse("admin:orgs_organization_changelist")).status_code == 302
