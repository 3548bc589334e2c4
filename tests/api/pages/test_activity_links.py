"""Pages of things lead to their rows in the logs. Each link is followed: it finds the thing's rows and no others."""

from __future__ import annotations

import html
import re
from datetime import timedelta
from typing import Any
from urllib.parse import unquote

from gateway.lib import clock
from oauth_ext.models import Client, TokenFamily
from oauth_ext.services.agent_keys import mint_agent_key
from oauth_ext.services.service_clients import create_service_client
from orgs.roles import Role
from orgs.services.members import change_role
from orgs.services.teams import add_team_member, create_team
from orgs.services.tool_access import set_allowlist
from tests.api.audit.log_rows import add_call
from tests.api.pages.conftest import Site, text
from tests.factories.tenant import connect

REQUESTS, CHANGES = "audit_pages:request-log", "audit_pages:admin-log"


def follow(site: Site, page: str, log: str, query: str) -> list[Any]:
    """The rows behind the page's link to this log that has this query."""
    admin = site.cast.client("admin")
    shown = admin.get(page)
    assert shown.status_code == 200
    links = {unquote(html.unescape(found)) for found in re.findall(r'href="([^"]+)"', text(shown))}
    wanted = f"{site.path(log)}?{query}"
    assert wanted in links, sorted(link for link in links if "/audit" in link)
    answer = admin.get(wanted)
    assert answer.status_code == 200
    return list(answer.context["entries"])


def activity_tab(site: Site, page: str) -> list[str]:
    """The request ids behind the page's tab "Activity"."""
    admin = site.cast.client("admin")
    [tab] = [tab for tab in admin.get(page).context["tabs"] if tab["label"] == "Activity"]
    return [entry.request_id for entry in admin.get(tab["url"]).context["entries"]]


def events(rows: list[Any]) -> list[str]:
    return [row.event_type for row in rows]


def test_a_member_leads_to_calls_and_changes(site: Site) -> None:
    org, member, owner = site.cast.org, site.cast.user("member"), site.cast.user("owner")
    change_role(actor=owner, organization=org, user_id=member.id, role=Role.ADMIN)
    add_call(org.id, user_id=str(member.id), request_id="theirs")
    add_call(org.id, user_id=str(owner.id))
    add_call(site.cast.other_org.id, user_id=str(member.id), request_id="foreign")
    page = site.path("orgs:members")
    assert events(follow(site, page, CHANGES, f"target_id={member.id}")) == ["member.role_changed"]
    calls = follow(site, page, REQUESTS, f"user_id={member.id}")
    assert [row.request_id for row in calls] == ["theirs"]


def test_an_agent_leads_to_calls_and_changes(site: Site) -> None:
    org, owner = site.cast.org, site.cast.user("owner")
    client, another = (
        create_service_client(actor=owner, organization=org, name=name).client for name in ("reporter", "another")
    )
    for each in (client, another):
        mint_agent_key(actor=owner, client=each)
    add_call(org.id, user_id=client.subject, request_id="its")
    add_call(org.id)
    page = site.path("oauth_pages:service-client", client.client_id)
    changes = follow(site, page, CHANGES, f"target_id={client.id}")
    assert set(events(changes)) == {"service_client.created", "agent_key.created"}
    assert activity_tab(site, page) == ["its"]


def test_a_team_leads_to_its_members_calls_and_to_changes(site: Site) -> None:
    owner, org = site.cast.user("owner"), site.cast.org
    team = create_team(actor=owner, organization=org, name="Night shift")
    create_team(actor=owner, organization=org, name="Day shift")
    rows = follow(site, site.path("orgs:team", str(team.id)), CHANGES, f"target_id={team.id}")
    assert [(row.event_type, row.target_label) for row in rows] == [("team.created", "Night shift")]
    member = site.cast.user("member")
    add_team_member(actor=owner, organization=org, team_id=team.id, user_id=member.id)
    add_call(org.id, user_id=str(member.id), request_id="its")
    add_call(org.id, user_id=str(owner.id))
    add_call(site.cast.other_org.id, user_id=str(member.id))
    assert activity_tab(site, site.path("orgs:team", str(team.id))) == ["its"]


def test_a_connection_leads_to_calls_and_once_it_is_stored_to_changes(site: Site) -> None:
    org, page = site.cast.org, site.path("credentials:connection", "fake")
    add_call(org.id, vendor="fake", request_id="its")
    add_call(org.id)
    assert activity_tab(site, page) == ["its"]
    assert site.path(CHANGES) + "?" not in text(site.owner().get(page))
    stored = connect(org, site.cast.user("owner"))
    assert events(follow(site, page, CHANGES, f"target_id={stored.id}")) == ["credential.created"]


def test_tool_access_leads_to_calls_and_the_roles_changes(site: Site) -> None:
    org, owner, page = site.cast.org, site.cast.user("owner"), site.path("proxy_pages:tool-access", "fake")
    add_call(org.id, vendor="fake", request_id="its")
    add_call(org.id)
    for role in ("member", "admin"):
        set_allowlist(actor=owner, organization=org, vendor="fake", role=role, tools=[f"of_{role}"])
    assert activity_tab(site, page) == ["its"]
    (row,) = follow(site, f"{page}?role=admin", CHANGES, "target_id=fake:admin")
    assert row.metadata["tools"] == ["of_admin"]


def test_an_app_leads_to_changes_for_admins(site: Site) -> None:
    member, org = site.cast.user("member"), site.cast.org
    families = [
        TokenFamily.objects.create(
            client=Client.objects.create(name=name, user=None, organization=None),
            user=member,
            organization=org,
            scope="mcp",
            expires_at=clock.now() + timedelta(days=1),
        )
        for name in ("Editor", "Terminal")
    ]
    site.owner().post(site.path("oauth_pages:apps"), {"app": str(families[1].id)})
    page, app = site.path("oauth_pages:apps"), families[0].client
    assert follow(site, page, CHANGES, f"target_id={app.id}") == []
    site.owner().post(page, {"app": str(families[0].id)})
    assert events(list(site.owner().get(site.path(CHANGES), {"target_id": str(app.id)}).context["entries"])) == [
        "oauth.app_revoked"
    ]
    assert site.path(CHANGES) not in text(site.cast.client("member").get(page))
