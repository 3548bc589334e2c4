"""Connected apps: one's own, for admins all, and the end of one."""

from __future__ import annotations

import re
import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.http import HttpResponse
from django.test import Client as Browser
from django.test.utils import CaptureQueriesContext

from audit.models import AdminAuditEntry
from gateway.lib import clock
from oauth_ext.bearer import InvalidBearer
from oauth_ext.models import TokenFamily
from oauth_ext.services.token_families import begin_family
from tests.api.oauth_ext.conftest import Service
from tests.api.oauth_ext.devices import start_device
from tests.api.oauth_ext.flow import LOOPBACK, Flow, make_flow, make_public_client
from tests.factories.bearers import load_identity
from tests.factories.cast import Cast


def path(cast: Cast) -> str:
    return f"/orgs/{cast.org.id}/apps"


def text(response: HttpResponse) -> str:
    """The page as a person reads it."""
    assert response.status_code == 200
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode()))


def revoke(cast: Cast, who: str, family: TokenFamily | str) -> HttpResponse:
    app = family if isinstance(family, str) else str(family.pk)
    return cast.client(who).post(path(cast), {"app": app})


@pytest.fixture
def families(cast: Cast, service: Service, vendor: str) -> dict[str, TokenFamily]:
    """Apps of the member and the owner, a device, and an app of another organization's member."""
    make_flow(cast, "member", LOOPBACK, name="Members agent").tokens(scope="mcp:acme")
    make_flow(cast, "owner", name="Owners agent").tokens()
    make_flow(cast, "other_owner", name="Foreign agent").tokens()
    device = start_device(service)
    device.decide(cast.client("admin"))
    assert device.poll().status_code == 200
    return {family.client.name: family for family in TokenFamily.objects.select_related("client")}


def test_a_member_sees_what_it_allowed(cast: Cast, families: dict[str, TokenFamily]) -> None:
    page = text(cast.client("member").get(path(cast)))
    assert "Apps you have authorized" in page
    assert "Members agent unverified 127.0.0.1 Acme" in page
    for other in ("Owners agent", "Foreign agent", "build bot"):
        assert other not in page


@pytest.mark.parametrize("who", ["admin", "owner"])
def test_an_admin_sees_what_everybody_allowed(cast: Cast, families: dict[str, TokenFamily], who: str) -> None:
    page = text(cast.client(who).get(path(cast)))
    assert "Members agent unverified Member 127.0.0.1 Acme" in page
    assert "Owners agent unverified Owner app.example all vendors" in page
    assert "build bot itself, approved by Admin a device all vendors" in page
    assert "Foreign agent" not in page


@pytest.mark.parametrize(("who", "status"), [("other_owner", 404), ("stranger", 404), ("nobody", 302)])
def test_who_is_not_let_in(cast: Cast, families: dict[str, TokenFamily], who: str, status: int) -> None:
    assert cast.client(who).get(path(cast)).status_code == status
    assert revoke(cast, who, families["Members agent"]).status_code == status
    assert TokenFamily.objects.count() == 4


def test_nothing_connected_yet(cast: Cast) -> None:
    assert "No connected apps" in text(cast.client("member").get(path(cast)))


def test_what_is_over_is_not_listed(cast: Cast, families: dict[str, TokenFamily]) -> None:
    now = clock.now()
    TokenFamily.objects.filter(pk=families["Members agent"].pk).update(expires_at=now)
    TokenFamily.objects.filter(pk=families["Owners agent"].pk).update(last_used_at=now - timedelta(days=30))
    page = text(cast.client("owner").get(path(cast)))
    assert "Members agent" not in page
    assert "Owners agent" not in page
    assert "build bot" in page


@pytest.mark.parametrize("who", ["member", "admin", "owner"])
def test_revoking_ends_all_its_tokens(cast: Cast, who: str) -> None:
    flow = make_flow(cast, "member", name="Members agent")
    first = flow.tokens()
    second = flow.refresh(first["refresh_token"]).json()
    answer = revoke(cast, who, TokenFamily.objects.get())
    assert (answer.status_code, answer["Location"]) == (302, path(cast))
    for pair in (first, second):
        with pytest.raises(InvalidBearer):
            load_identity(pair["access_token"])
        assert flow.refresh(pair["refresh_token"]).status_code == 400
    entry = AdminAuditEntry.objects.get(event_type="oauth.app_revoked")
    assert (entry.org_id, entry.actor_id) == (cast.org.id, str(cast.user(who).id))
    assert (entry.target_label, entry.metadata["user"]) == ("Members agent", "Member")
    flow.ask()  # the consent is not remembered any more


@pytest.mark.parametrize(("who", "status"), [("member", 200), ("admin", 200), ("other_owner", 404)])
def test_it_asks_before_it_revokes(cast: Cast, families: dict[str, TokenFamily], who: str, status: int) -> None:
    family = families["Members agent"]
    asked = cast.client(who).get(path(cast), {"app": str(family.pk)})
    assert asked.status_code == status
    if status == 200:
        assert "Revoke Members agent?" in text(asked)
        assert "Members agent can no longer call tools on behalf of Member." in text(asked)
        assert f'href="?app={family.pk}"' in cast.client(who).get(path(cast)).content.decode()
    assert cast.client("member").get(path(cast), {"app": str(families["Owners agent"].pk)}).status_code == 404
    assert TokenFamily.objects.count() == 4


def test_a_revoked_device_is_out(cast: Cast, service: Service, families: dict[str, TokenFamily]) -> None:
    assert revoke(cast, "member", families["build bot"]).status_code == 404
    assert revoke(cast, "admin", families["build bot"]).status_code == 302
    assert not TokenFamily.objects.filter(client=service.client).exists()
    assert service.token()  # the service client itself goes on


def test_what_belongs_to_others_is_not_there(cast: Cast, families: dict[str, TokenFamily]) -> None:
    assert revoke(cast, "member", families["Owners agent"]).status_code == 404
    for who in ("member", "owner"):
        assert revoke(cast, who, families["Foreign agent"]).status_code == 404
    for app in ("", "x", str(uuid.uuid4()), str(families["Owners agent"].pk).upper()):
        assert revoke(cast, "owner", app).status_code == 404
    assert TokenFamily.objects.count() == 4
    assert not AdminAuditEntry.objects.filter(event_type="oauth.app_revoked").exists()


def test_twice_is_once(cast: Cast, families: dict[str, TokenFamily]) -> None:
    assert revoke(cast, "member", families["Members agent"]).status_code == 302
    assert revoke(cast, "member", families["Members agent"]).status_code == 404


def test_a_form_without_its_token(cast: Cast, families: dict[str, TokenFamily]) -> None:
    strict = Browser(enforce_csrf_checks=True)
    strict.cookies = cast.client("member").cookies
    assert strict.post(path(cast), {"app": str(families["Members agent"].pk)}).status_code == 403
    assert TokenFamily.objects.count() == 4


def test_names_are_text(cast: Cast) -> None:
    flow = make_flow(cast, "member", name="<script>alert(1)</script>")
    flow.tokens()
    content = cast.client("owner").get(path(cast)).content.decode()
    assert "<script>alert" not in content
    assert "&lt;script&gt;alert" in content


def test_the_navigation_leads_there(cast: Cast) -> None:
    assert f'href="{path(cast)}"' in cast.client("member").get(f"/orgs/{cast.org.id}").content.decode()


def test_another_persons_apps_live(cast: Cast, families: dict[str, TokenFamily]) -> None:
    flow = Flow(families["Members agent"].client, cast.client("owner"), LOOPBACK)
    theirs = flow.tokens()
    revoke(cast, "member", families["Members agent"])
    load_identity(theirs["access_token"])


def more_apps(cast: Cast, count: int, vendor: str) -> None:
    """So many authorizations of the member, each by a client of its own."""
    for number in range(count):
        client = make_public_client(name=f"App {number:03}")
        begin_family(
            client=client,
            user=cast.user("member"),
            org_id=cast.org.id,
            approved_by_id=None,
            scopes=[f"mcp:{vendor}"],
            resources=["http://testserver/v1/mcp"],
        )


def test_every_app_is_on_some_page_and_each_page_asks_as_often(
    cast: Cast, vendor: str, django_assert_max_num_queries: Any
) -> None:
    more_apps(cast, 3, vendor)
    browser = cast.client("member")
    browser.get(path(cast))
    with CaptureQueriesContext(connection) as few:
        browser.get(path(cast))
    more_apps(cast, 52, vendor)
    with django_assert_max_num_queries(len(few)):
        first = browser.get(path(cast))
    assert len(first.context["apps"]) == 50
    assert "1 to 50 of 55" in text(first)
    last = browser.get(path(cast), {"page": "2"})
    assert len(last.context["apps"]) == 5
    oldest = last.context["apps"][-1]["family"]
    assert revoke(cast, "member", oldest).status_code == 302
    assert not TokenFamily.objects.filter(pk=oldest.pk).exists()
    assert text(cast.client("other_owner").get(f"/orgs/{cast.other_org.id}/apps")).count("App 0") == 0
