"""An organization's whole life through the generated Python client: python management_api.py ORIGIN

SESSION_NAME and SESSION_KEY are the cookie of a signed-in person, VENDOR_KEY a key of the vendor acme. The package
gateway_api is on the path. The last line of the output is what the program has seen, as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import httpx
from gateway_api import AuthenticatedClient, Client
from gateway_api.api.agents import (
    create_agent_key,
    create_service_client,
    delete_service_client,
    list_service_clients,
    revoke_agent_key,
    set_service_client_tool_mode,
    set_service_client_tools,
)
from gateway_api.api.credentials import connect_vendor, disconnect_vendor, list_connected_vendors, list_vendors
from gateway_api.api.logs import list_calls, list_changes
from gateway_api.api.organizations import (
    create_invitation,
    create_management_token,
    create_organization,
    create_team,
    delete_organization,
    delete_team,
    get_organization,
    give_team_access,
    list_invitations,
    list_members,
    list_organizations,
    list_teams,
    revoke_invitation,
    revoke_management_token,
)
from gateway_api.models import (
    AccessEndInput,
    ClientToolsInput,
    ConnectVendorBody,
    Error,
    InvitationInput,
    ManagementTokenInput,
    OrganizationInput,
    RotationInput,
    ServiceClientInput,
    TeamInput,
    ToolMode,
)

ORIGIN = sys.argv[1]
NAME = "Python Traders"
MCP = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}


def good(found: Any) -> Any:
    """The parsed answer, which is no error."""
    assert found is not None
    assert not isinstance(found, Error), found
    return found


def call(key: str, tool: str) -> httpx.Response:
    """A call of the agent."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": {}}}
    return httpx.post(f"{ORIGIN}/v1/mcp", json=body, headers={**MCP, "Authorization": f"Bearer {key}"}, timeout=30)


def live(signed_in: Client) -> dict[str, Any]:
    """From the creation of an organization to its end. Returns what was seen."""
    seen: dict[str, Any] = {}
    org = str(good(create_organization.sync(client=signed_in, body=OrganizationInput(name=NAME))).id)
    wanted = ManagementTokenInput(org_id=org, name="Python", scope="admin", expires_in_days=1)
    made = good(create_management_token.sync(client=signed_in, body=wanted))
    client = AuthenticatedClient(base_url=ORIGIN, token=made.token)
    seen["organizations"] = [each.name for each in good(list_organizations.sync(client=client))]
    seen["not by token"] = create_organization.sync_detailed(
        client=client, body=OrganizationInput(name="Another")
    ).parsed.error  # type: ignore[union-attr]

    vendor = good(list_vendors.sync(client=client, name="acme"))[0].slug
    fields = ConnectVendorBody.from_dict({"apiKey": os.environ["VENDOR_KEY"]})
    seen["validated"] = good(connect_vendor.sync(org, vendor, client=client, body=fields)).validated
    seen["connected"] = list_connected_vendors.sync(org, client=client)

    invitation = good(create_invitation.sync(org, client=client, body=InvitationInput(max_uses=1)))
    seen["invited"] = [str(each.id) for each in good(list_invitations.sync(org, client=client))] == [str(invitation.id)]
    assert revoke_invitation.sync_detailed(org, str(invitation.id), client=client).status_code == 204
    team = TeamInput(name="Night shift")
    twice = [good(create_team.sync(org, client=client, body=team, idempotency_key="night-shift")) for _ in range(2)]
    found = good(list_teams.sync(org, client=client, name="Night shift"))
    seen["one team"] = len({str(each.id) for each in (*twice, *found)}) == 1
    assert good(list_teams.sync(org, client=client, name="Day shift")) == []
    good(give_team_access.sync(org, str(twice[0].id), vendor, client=client, body=AccessEndInput()))
    seen["members"] = [each.role for each in good(list_members.sync(org, client=client))]

    agent = good(create_service_client.sync(org, client=client, body=ServiceClientInput(name="Triage bot"))).client_id
    seen["imported"] = good(list_service_clients.sync(org, client=client, name="Triage bot"))[0].client_id == agent
    good(set_service_client_tool_mode.sync(org, agent, client=client, body=ToolMode(mode="read_only")))
    allowed = ClientToolsInput(tools=["acme_whoami"])
    good(set_service_client_tools.sync(org, agent, vendor, client=client, body=allowed))
    key = good(create_agent_key.sync(org, agent, client=client, body=RotationInput())).agent_key
    seen["call"] = "key_fingerprint" in json.dumps(call(key, "acme_whoami").json())
    seen["refused call"] = call(key, "acme_create_ticket").json()["result"]["isError"]
    seen["token at /v1"] = call(made.token, "acme_whoami").status_code
    logged = good(list_calls.sync(client=client, org_id=org))
    seen["calls"] = sorted({each.tool for each in logged.entries})
    changes = good(list_changes.sync(client=client, org_id=org))
    team_made = next(each for each in changes.entries if each.event_type == "team.created")
    seen["actor names the token"] = f"(token Python, {made.prefix})" in team_made.actor_label

    assert revoke_agent_key.sync_detailed(org, agent, client=client).status_code == 204
    seen["revoked key"] = call(key, "acme_whoami").status_code
    assert delete_service_client.sync_detailed(org, agent, client=client).status_code == 204
    assert delete_team.sync_detailed(org, str(twice[0].id), client=client).status_code == 204
    assert disconnect_vendor.sync_detailed(org, vendor, client=client).status_code == 204
    seen["left"] = [list_connected_vendors.sync(org, client=client), list_teams.sync(org, client=client)]
    assert revoke_management_token.sync_detailed(str(made.id), client=signed_in).status_code == 204
    seen["revoked token"] = int(get_organization.sync_detailed(org, client=client).status_code)
    assert delete_organization.sync_detailed(org, client=signed_in).status_code == 204
    seen["gone"] = int(get_organization.sync_detailed(org, client=signed_in).status_code)
    return seen


if __name__ == "__main__":
    cookie = {os.environ["SESSION_NAME"]: os.environ["SESSION_KEY"]}
    sys.stdout.write(json.dumps(live(Client(base_url=ORIGIN, cookies=cookie, timeout=30))) + "\n")
