"""Support staff look and find, and see no secret."""

from __future__ import annotations

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission
from django.test import Client as Browser

from audit.models import AdminAuditEntry
from gateway.lib import secrets
from oauth_ext.bearer import InvalidBearer
from oauth_ext.models import (
    AccessToken,
    AgentKey,
    DeviceGrant,
    Grant,
    IDToken,
    RefreshToken,
    RememberedConsent,
    SigningKey,
    TokenFamily,
)
from oauth_ext.models import Client as OAuthClient
from oauth_ext.services.agent_keys import mint_agent_key
from tests.api.oauth_ext.conftest import Service
from tests.api.oauth_ext.devices import start_device
from tests.api.oauth_ext.flow import Flow, make_flow
from tests.api.support.people import act
from tests.factories.bearers import load_identity
from tests.factories.cast import Cast
from tests.factories.credentials import make_service_client


@pytest.fixture
def staff(cast: Cast) -> Browser:
    """A superuser's browser."""
    person = cast.user("stranger")
    person.is_staff = person.is_superuser = True
    person.save()
    return cast.client("stranger")


def test_lists_and_pages_show_no_secret(cast: Cast, service: Service, staff: Browser) -> None:
    token = service.token()
    agent_key = mint_agent_key(actor=cast.user("owner"), client=service.client).agent_key
    service.client.refresh_from_db()
    hidden = [
        service.secret,
        service.client.client_secret,
        token,
        secrets.sha256(token).hex(),
        agent_key,
        secrets.sha256(agent_key.rpartition("_")[2]).hex(),
    ]
    rows = {
        "client": service.client.pk,
        "agentkey": AgentKey.objects.get().pk,
        "accesstoken": AccessToken.objects.get().pk,
        "signingkey": SigningKey.objects.get().pk,
    }
    for model, key in rows.items():
        for path in (f"/admin/oauth_ext/{model}/?q=build", f"/admin/oauth_ext/{model}/{key}/change/"):
            answer = staff.get(path)
            assert answer.status_code == 200, path
            page = answer.content.decode()
            assert not any(secret in page for secret in hidden), path
    assert staff.get("/admin/oauth_ext/refreshtoken/?q=build").status_code == 200


def test_search_finds_by_name_and_id(service: Service, staff: Browser) -> None:
    for wanted in ("build", service.client.client_id, "Acme"):
        assert b"build bot" in staff.get("/admin/oauth_ext/client/", {"q": wanted}).content
    assert b"build bot" not in staff.get("/admin/oauth_ext/client/", {"q": "nothing like it"}).content


def test_nobody_changes_anything(service: Service, staff: Browser) -> None:
    page = f"/admin/oauth_ext/client/{service.client.pk}"
    assert staff.post(f"{page}/change/", {"name": "mine"}).status_code == 403
    assert staff.post(f"{page}/delete/", {"post": "yes"}).status_code == 403
    assert staff.get("/admin/oauth_ext/client/add/").status_code == 403
    service.client.refresh_from_db()
    assert service.client.name == "build bot"


def test_the_librarys_own_pages_are_gone() -> None:
    registered = admin.site._registry
    assert IDToken not in registered
    for model in (OAuthClient, AccessToken, RefreshToken, Grant, DeviceGrant, TokenFamily):
        assert type(registered[model]).__module__ == "oauth_ext.admin"


def test_what_the_flows_leave_is_shown_without_its_codes(cast: Cast, service: Service, staff: Browser) -> None:
    flow = make_flow(cast)
    unused, tokens, device = flow.code(), flow.tokens(), start_device(service)
    hidden = [unused, tokens["access_token"], tokens["refresh_token"]]
    hidden += [secrets.sha256(each).hex() for each in hidden]
    hidden += [device.device_code, device.user_code, device.user_code.replace("-", "")]
    hidden += [device.row.device_code_sha256.hex(), device.row.user_code_hash.hex()]
    for model in (Grant, DeviceGrant, TokenFamily, RefreshToken, AccessToken):
        name = model._meta.model_name
        keys = model._default_manager.values_list("pk", flat=True)
        for path in (f"{name}/?q=a", *(f"{name}/{key}/change/" for key in keys)):
            answer = staff.get(f"/admin/oauth_ext/{path}")
            assert answer.status_code == 200, path
            assert [each for each in hidden if each in answer.content.decode()] == [], path


def is_refused(token: str) -> bool:
    with pytest.raises(InvalidBearer):
        load_identity(token)
    return True


def test_staff_end_a_family(cast: Cast, staff: Browser) -> None:
    flow = make_flow(cast)
    tokens, kept = flow.tokens(), make_flow(cast, "owner").tokens()
    family = TokenFamily.objects.get(user=cast.user("member"))
    assert act(staff, "revoke-app", family, cast.org).status_code == 302
    assert is_refused(tokens["access_token"])
    assert flow.refresh(tokens["refresh_token"]).status_code == 400
    load_identity(kept["access_token"])
    entry = AdminAuditEntry.objects.get(event_type="oauth.app_revoked")
    assert (entry.org_id, entry.actor_id, entry.actor_label) == (
        cast.org.id,
        str(cast.user("stranger").id),
        "Stranger (support staff)",
    )
    assert entry.metadata["by"] == "support staff"
    assert entry.metadata["user_id"] == str(cast.user("member").id)
    assert not RememberedConsent.objects.filter(user=cast.user("member")).exists()


def test_staff_delete_a_public_client(cast: Cast, staff: Browser) -> None:
    flow = make_flow(cast)
    tokens = flow.tokens()
    theirs = Flow(flow.client, cast.client("other_owner")).tokens()
    assert act(staff, "delete", flow.client).status_code == 302
    assert is_refused(tokens["access_token"])
    assert is_refused(theirs["access_token"])
    assert flow.refresh(tokens["refresh_token"]).status_code == 401
    entries = AdminAuditEntry.objects.filter(event_type="oauth.app_revoked")
    assert {entry.org_id for entry in entries} == {cast.org.id, cast.other_org.id}
    assert {entry.actor_label for entry in entries} == {"Stranger (support staff)"}
    assert all(entry.metadata["client_deleted"] for entry in entries)


def test_staff_delete_a_service_client(cast: Cast, service: Service, staff: Browser) -> None:
    token = service.token()
    assert act(staff, "delete-agent", service.client, cast.org).status_code == 302
    assert is_refused(token)
    entry = AdminAuditEntry.objects.get(event_type="service_client.deleted")
    assert (entry.org_id, entry.actor_label) == (cast.org.id, "Stranger (support staff)")


def test_staff_revoke_an_agent_key(cast: Cast, service: Service, staff: Browser) -> None:
    minted = mint_agent_key(actor=cast.user("owner"), client=service.client)
    kept = mint_agent_key(actor=cast.user("other_owner"), client=make_service_client(cast.other_org))
    key = AgentKey.objects.get(prefix=minted.prefix)
    assert act(staff, "revoke-key", key, cast.org).status_code == 302
    assert is_refused(minted.agent_key)
    load_identity(kept.agent_key)
    entry = AdminAuditEntry.objects.get(event_type="agent_key.revoked")
    assert (entry.org_id, entry.actor_id) == (cast.org.id, str(cast.user("stranger").id))
    assert entry.actor_label == "Stranger (support staff)"
    assert minted.agent_key not in str(entry.metadata)


def test_staff_who_may_only_look(cast: Cast, service: Service, staff: Browser) -> None:
    person = cast.user("stranger")
    person.is_superuser = False
    person.save()
    person.user_permissions.set(Permission.objects.filter(codename="view_organization"))
    make_flow(cast).tokens()
    family = TokenFamily.objects.get()
    mint_agent_key(actor=cast.user("owner"), client=service.client)
    agent_key = AgentKey.objects.get()
    for action, thing in (("revoke-app", family), ("delete-agent", service.client), ("revoke-key", agent_key)):
        assert act(staff, action, thing, cast.org).status_code == 403
    for model in ("tokenfamily", "client", "agentkey"):
        assert staff.get(f"/admin/oauth_ext/{model}/").status_code == 403
    family.refresh_from_db()
    service.client.refresh_from_db()
    agent_key.refresh_from_db()
    assert not AdminAuditEntry.objects.filter(event_type="oauth.app_revoked").exists()


def test_nobody_else_comes_near(cast: Cast, service: Service) -> None:
    for who in ("owner", "nobody"):
        assert act(cast.client(who), "delete-agent", service.client, cast.org).status_code == 302
    service.client.refresh_from_db()
