"""Pure: names of the OpenAPI document in a customer's words. Generated clients have them as functions and types."""

from __future__ import annotations

import re

_ORG = "/api/orgs/{org_id}"
_AGENT = f"{_ORG}/service-clients/{{client_id}}"
_MEMBER, _TEAM = f"{_ORG}/members/{{user_id}}", f"{_ORG}/teams/{{team_id}}"
_KEYS = f"{_ORG}/credentials/{{vendor}}/keys"
_DESTINATION = f"{_ORG}/log-shipping/{{destination_id}}"
_REQUEST = f"{_ORG}/access-requests/{{request_id}}"
OPERATIONS: dict[tuple[str, str], str] = {
    ("GET", "/api/audit"): "list_calls",
    ("GET", "/api/audit/admin"): "list_changes",
    ("GET", "/api/audit/mine"): "list_own_calls",
    ("POST", "/api/billing/checkout"): "start_checkout",
    ("POST", "/api/billing/portal"): "open_billing_portal",
    ("GET", "/api/dashboard/savings"): "get_savings",
    ("GET", "/api/dashboard/usage"): "get_usage",
    ("GET", "/api/dashboard/vendors"): "get_vendor_usage",
    ("GET", "/api/orgs"): "list_organizations",
    ("POST", "/api/orgs"): "create_organization",
    ("GET", _ORG): "get_organization",
    ("PATCH", _ORG): "rename_organization",
    ("DELETE", _ORG): "delete_organization",
    ("PATCH", f"{_ORG}/settings"): "change_organization_settings",
    ("POST", f"{_ORG}/redeem-code"): "redeem_code",
    ("GET", f"{_ORG}/access-requests"): "list_access_requests",
    ("POST", f"{_ORG}/access-requests"): "create_access_request",
    ("DELETE", _REQUEST): "withdraw_access_request",
    ("POST", f"{_REQUEST}/approve"): "approve_access_request",
    ("POST", f"{_REQUEST}/decline"): "decline_access_request",
    ("GET", f"{_ORG}/alert-messages"): "list_alert_messages",
    ("GET", f"{_ORG}/alert-settings"): "get_alert_settings",
    ("PATCH", f"{_ORG}/alert-settings"): "change_alert_settings",
    ("POST", f"{_ORG}/alert-settings/rotate-secret"): "rotate_alert_secret",
    ("POST", f"{_ORG}/alert-settings/test"): "test_alerts",
    ("GET", f"{_ORG}/alerts"): "list_alerts",
    ("GET", f"{_ORG}/credentials"): "list_connected_vendors",
    ("POST", f"{_ORG}/credentials/{{vendor}}"): "connect_vendor",
    ("DELETE", f"{_ORG}/credentials/{{vendor}}"): "disconnect_vendor",
    ("GET", _KEYS): "list_named_keys",
    ("POST", _KEYS): "create_named_key",
    ("POST", f"{_KEYS}/{{key_id}}"): "replace_named_key",
    ("PUT", f"{_KEYS}/{{key_id}}"): "change_named_key",
    ("DELETE", f"{_KEYS}/{{key_id}}"): "delete_named_key",
    ("GET", f"{_ORG}/invitations"): "list_invitations",
    ("POST", f"{_ORG}/invitations"): "create_invitation",
    ("DELETE", f"{_ORG}/invitations/{{invitation_id}}"): "revoke_invitation",
    ("POST", f"{_ORG}/invitations/people"): "invite_people",
    ("POST", f"{_ORG}/invitations/{{invitation_id}}/send"): "send_invitation",
    ("GET", f"{_ORG}/log-shipping"): "list_log_destinations",
    ("POST", f"{_ORG}/log-shipping"): "create_log_destination",
    ("GET", _DESTINATION): "get_log_destination",
    ("PATCH", _DESTINATION): "change_log_destination",
    ("DELETE", _DESTINATION): "delete_log_destination",
    ("POST", f"{_DESTINATION}/replay"): "replay_log_destination",
    ("POST", f"{_DESTINATION}/test"): "test_log_destination",
    ("GET", f"{_ORG}/members"): "list_members",
    ("DELETE", _MEMBER): "remove_member",
    ("PUT", f"{_MEMBER}/ownership"): "transfer_ownership",
    ("PATCH", f"{_MEMBER}/role"): "change_member_role",
    ("GET", f"{_MEMBER}/server-access"): "list_member_access",
    ("PUT", f"{_MEMBER}/server-access"): "replace_member_access",
    ("PUT", f"{_MEMBER}/server-access/{{vendor}}"): "give_member_access",
    ("DELETE", f"{_MEMBER}/server-access/{{vendor}}"): "remove_member_access",
    ("DELETE", f"{_ORG}/membership"): "leave_organization",
    ("DELETE", f"{_ORG}/ownership"): "step_down",
    ("GET", f"{_ORG}/server-access"): "list_vendor_access",
    ("GET", f"{_ORG}/service-clients"): "list_service_clients",
    ("POST", f"{_ORG}/service-clients"): "create_service_client",
    ("PATCH", _AGENT): "change_service_client",
    ("DELETE", _AGENT): "delete_service_client",
    ("PUT", f"{_AGENT}/acting"): "set_service_client_acting",
    ("POST", f"{_AGENT}/agent-key"): "create_agent_key",
    ("DELETE", f"{_AGENT}/agent-key"): "revoke_agent_key",
    ("GET", f"{_AGENT}/credentials"): "list_service_client_credentials",
    ("POST", f"{_AGENT}/credentials/{{vendor}}"): "store_service_client_credential",
    ("DELETE", f"{_AGENT}/credentials/{{vendor}}"): "delete_service_client_credential",
    ("POST", f"{_AGENT}/rotate-secret"): "rotate_client_secret",
    ("GET", f"{_AGENT}/tool-access"): "list_service_client_tools",
    ("PUT", f"{_AGENT}/tool-access"): "set_service_client_tool_mode",
    ("GET", f"{_AGENT}/tool-access/{{vendor}}"): "get_service_client_tools",
    ("PUT", f"{_AGENT}/tool-access/{{vendor}}"): "set_service_client_tools",
    ("DELETE", f"{_AGENT}/tool-access/{{vendor}}"): "clear_service_client_tools",
    ("GET", f"{_AGENT}/item-access/{{vendor}}"): "list_service_client_items",
    ("PUT", f"{_AGENT}/item-access/{{vendor}}/{{kind}}"): "set_service_client_items",
    ("DELETE", f"{_AGENT}/item-access/{{vendor}}/{{kind}}"): "clear_service_client_items",
    ("GET", f"{_ORG}/teams"): "list_teams",
    ("POST", f"{_ORG}/teams"): "create_team",
    ("PATCH", _TEAM): "rename_team",
    ("DELETE", _TEAM): "delete_team",
    ("GET", f"{_TEAM}/credentials"): "list_team_credentials",
    ("POST", f"{_TEAM}/credentials/{{vendor}}"): "store_team_credential",
    ("DELETE", f"{_TEAM}/credentials/{{vendor}}"): "delete_team_credential",
    ("PUT", f"{_TEAM}/members/{{user_id}}"): "add_team_member",
    ("DELETE", f"{_TEAM}/members/{{user_id}}"): "remove_team_member",
    ("PUT", f"{_TEAM}/server-access/{{vendor}}"): "give_team_access",
    ("DELETE", f"{_TEAM}/server-access/{{vendor}}"): "remove_team_access",
    ("GET", f"{_ORG}/tool-access/{{vendor}}"): "list_allowed_tools",
    ("PUT", f"{_ORG}/tool-access/{{vendor}}/{{role}}"): "set_allowed_tools",
    ("DELETE", f"{_ORG}/tool-access/{{vendor}}/{{role}}"): "clear_allowed_tools",
    ("GET", f"{_ORG}/tool-access/{{vendor}}/discover"): "discover_tools",
    ("GET", f"{_ORG}/tool-access/{{vendor}}/items"): "list_vendor_items",
    ("GET", f"{_ORG}/item-access/{{vendor}}"): "list_allowed_items",
    ("PUT", f"{_ORG}/item-access/{{vendor}}/{{role}}/{{kind}}"): "set_allowed_items",
    ("DELETE", f"{_ORG}/item-access/{{vendor}}/{{role}}/{{kind}}"): "clear_allowed_items",
    ("GET", f"{_ORG}/trusted-issuers"): "list_trusted_issuers",
    ("POST", f"{_ORG}/trusted-issuers"): "trust_issuer",
    ("DELETE", f"{_ORG}/trusted-issuers/{{issuer_id}}"): "remove_trusted_issuer",
    ("GET", f"{_ORG}/vendor-connections"): "list_vendor_connections",
    ("POST", f"{_ORG}/vendor-connections/{{vendor}}"): "begin_vendor_sign_in",
    ("DELETE", f"{_ORG}/vendor-connections/{{vendor}}"): "end_vendor_connection",
    ("GET", f"{_ORG}/vendor-connections/{{vendor}}/rules"): "get_vendor_sign_in_rules",
    ("PUT", f"{_ORG}/vendor-connections/{{vendor}}/rules"): "change_vendor_sign_in_rules",
    ("GET", f"{_ORG}/vendor-health"): "get_vendor_health",
    ("GET", f"{_ORG}/vendor-questions/{{vendor}}"): "get_vendor_question_rules",
    ("PUT", f"{_ORG}/vendor-questions/{{vendor}}"): "change_vendor_question_rules",
    ("GET", "/api/profile"): "get_profile",
    ("PATCH", "/api/profile"): "change_profile",
    ("GET", "/api/profile/tokens"): "list_management_tokens",
    ("POST", "/api/profile/tokens"): "create_management_token",
    ("DELETE", "/api/profile/tokens/{token_id}"): "revoke_management_token",
    ("GET", "/api/profile/vendor-connections"): "list_own_vendor_connections",
    ("POST", "/api/profile/vendor-connections/{vendor}"): "begin_own_vendor_sign_in",
    ("DELETE", "/api/profile/vendor-connections/{vendor}"): "end_own_vendor_connection",
    ("GET", "/api/vendors"): "list_vendors",
}
# By Django app, or by module where a subject is not the app's.
TAGS = {
    "proxy.api.alerts": "alerts",
    "orgs": "organizations",
    "proxy": "vendors",
    "credentials": "credentials",
    "oauth_ext": "agents",
    "audit": "logs",
    "billing": "plan",
}
# Those of other classes lose `Out`, and have `Input` for `In`.
_SCHEMAS = {
    "AccessOut": "EffectiveAccess",
    "ActingBody": "Acting",
    "CodeIn": "RedeemCodeInput",
    "ChosenOrgIn": "OrganizationChoice",
    "CreatedOut": "CreatedServiceClient",
    "EndIn": "AccessEndInput",
    "ErrorBody": "Error",
    "FieldOut": "VendorField",
    "GrantOut": "VendorAccess",
    "KeyIn": "NamedKeyInput",
    "KeyOut": "NamedKey",
    "KeyUpdateIn": "NamedKeyChange",
    "MadeTokenOut": "CreatedManagementToken",
    "PageOut": "ProviderPage",
    "RotatedOut": "RotatedSecret",
    "SignInOut": "VendorAuthorization",
    "StoredOut": "StoredCredential",
    "ToolModeBody": "ToolMode",
    "VendorsOut": "VendorHealthList",
}


def operation_name(method: str, path: str) -> str:
    """The name of the table; for a route without one, method and literal parts, such as `get_orgs_members`."""
    named = OPERATIONS.get((method, path))
    if named is not None:
        return named
    parts = [part for part in path.removeprefix("/api/").split("/") if not part.startswith("{")]
    words = re.sub(r"[^0-9A-Za-z]+", "_", "_".join(parts))
    return f"{method.lower()}_{words}{'_one' if path.endswith('}') else ''}"


def schema_name(name: str) -> str:
    """The name of a serializer's schema."""
    if name in _SCHEMAS:
        return _SCHEMAS[name]
    if name.endswith("Out"):
        return name.removesuffix("Out")
    return f"{name.removesuffix('In')}Input" if name.endswith("In") else name
