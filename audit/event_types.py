"""Pure: the event types of the admin log, as noun.past_verb. Spec: §2 Audit entries · D82"""

from __future__ import annotations

from enum import StrEnum


class EventType(StrEnum):
    # Beyond D82: member.added (by a command), service_client.secret_rotated, oauth.app_revoked,
    # oauth.code_reuse_detected, vendor.tools_approved, vendor.secret_echoed, billing.updated (a change within one plan
    # state).
    ORGANIZATION_CREATED = "organization.created"
    CREDENTIAL_CREATED = "credential.created"
    CREDENTIAL_REPLACED = "credential.replaced"
    CREDENTIAL_DELETED = "credential.deleted"
    SERVICE_CLIENT_CREATED = "service_client.created"
    SERVICE_CLIENT_SECRET_ROTATED = "service_client.secret_rotated"  # noqa: S105 - the name of an event
    SERVICE_CLIENT_DELETED = "service_client.deleted"
    AGENT_KEY_CREATED = "agent_key.created"
    AGENT_KEY_ROTATED = "agent_key.rotated"
    AGENT_KEY_REVOKED = "agent_key.revoked"
    DEVICE_APPROVED = "device.approved"
    DEVICE_DENIED = "device.denied"
    OAUTH_CONSENT_GRANTED = "oauth.consent_granted"
    OAUTH_APP_REVOKED = "oauth.app_revoked"
    OAUTH_CODE_REUSE_DETECTED = "oauth.code_reuse_detected"
    OAUTH_REFRESH_GRACE_USED = "oauth.refresh_grace_used"
    OAUTH_REFRESH_REUSE_DETECTED = "oauth.refresh_reuse_detected"
    OAUTH_PERSON_REFUSED = "oauth.person_refused"
    ORGANIZATION_UPDATED = "organization.updated"
    ORGANIZATION_SETTINGS_UPDATED = "organization.settings_updated"
    ORGANIZATION_DELETED = "organization.deleted"
    MEMBER_ADDED = "member.added"
    MEMBER_REMOVED = "member.removed"
    MEMBER_ROLE_CHANGED = "member.role_changed"
    MEMBER_DEACTIVATED = "member.deactivated"
    MEMBER_REACTIVATED = "member.reactivated"
    INVITATION_CREATED = "invitation.created"
    INVITATION_ACCEPTED = "invitation.accepted"
    INVITATION_REVOKED = "invitation.revoked"
    SERVER_ACCESS_GRANTED = "server_access.granted"
    SERVER_ACCESS_REVOKED = "server_access.revoked"
    SERVER_ACCESS_REPLACED = "server_access.replaced"
    CREDENTIAL_KEY_CREATED = "credential_key.created"
    CREDENTIAL_KEY_UPDATED = "credential_key.updated"
    CREDENTIAL_KEY_DELETED = "credential_key.deleted"
    TEAM_CREATED = "team.created"
    TEAM_RENAMED = "team.renamed"
    TEAM_DELETED = "team.deleted"
    TEAM_MEMBER_ADDED = "team.member_added"
    TEAM_MEMBER_REMOVED = "team.member_removed"
    TOOL_ACCESS_UPDATED = "tool_access.updated"
    TOOL_ACCESS_CLEARED = "tool_access.cleared"
    VENDOR_TOOLS_CHANGED = "vendor.tools_changed"
    VENDOR_TOOLS_APPROVED = "vendor.tools_approved"
    VENDOR_SECRET_ECHOED = "vendor.secret_echoed"  # noqa: S105 - the name of an event
    BILLING_ACTIVATED = "billing.activated"
    BILLING_LAPSED = "billing.lapsed"
    BILLING_UPDATED = "billing.updated"
