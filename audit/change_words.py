"""Pure: an event of the admin log as the end of a sentence that begins with its actor. Spec: §4.10 · D82"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from string import Formatter

from audit.event_types import EventType
from gateway.lib.sentences import sentence

# Names in braces are things of the row: a page may lead to them. `target` is the target's label as it is.
WORDS: dict[EventType, str] = {
    EventType.ORGANIZATION_CREATED: sentence("created the organization"),
    EventType.ORGANIZATION_UPDATED: sentence("renamed the organization to {target}"),
    EventType.ORGANIZATION_SETTINGS_UPDATED: sentence("changed the organization’s settings"),
    EventType.ORGANIZATION_DELETED: sentence("deleted the organization"),
    EventType.ORGANIZATION_RESTORED: sentence("reapplied revocations made after the restored backup"),
    EventType.CREDENTIAL_CREATED: sentence("stored credentials for {vendor}"),
    EventType.CREDENTIAL_REPLACED: sentence("replaced credentials for {vendor}"),
    EventType.CREDENTIAL_DELETED: sentence("deleted credentials for {vendor}"),
    EventType.CREDENTIAL_CHECKED: sentence("checked credentials for {vendor}"),
    EventType.CREDENTIAL_KEY_CREATED: sentence("added a named key for {vendor}"),
    EventType.CREDENTIAL_KEY_UPDATED: sentence("changed a named key for {vendor}"),
    EventType.CREDENTIAL_KEY_REPLACED: sentence("replaced a named key for {vendor}"),
    EventType.CREDENTIAL_KEY_DELETED: sentence("deleted a named key for {vendor}"),
    EventType.SERVICE_CLIENT_CREATED: sentence("created the agent {agent}"),
    EventType.SERVICE_CLIENT_UPDATED: sentence("changed the agent {agent}"),
    EventType.SERVICE_CLIENT_SECRET_ROTATED: sentence("rotated the client secret of {agent}"),
    EventType.SERVICE_CLIENT_DELETED: sentence("deleted the agent {target}"),
    EventType.AGENT_KEY_CREATED: sentence("created a key for {agent}"),
    EventType.AGENT_KEY_ROTATED: sentence("rotated the key of {agent}"),
    EventType.AGENT_KEY_REVOKED: sentence("revoked the key of {agent}"),
    EventType.DEVICE_APPROVED: sentence("approved a device for {target}"),
    EventType.DEVICE_DENIED: sentence("denied a device of {target}"),
    EventType.OAUTH_CONSENT_GRANTED: sentence("allowed the app {target}"),
    EventType.OAUTH_APP_REVOKED: sentence("revoked the app {target}"),
    EventType.OAUTH_CODE_REUSE_DETECTED: sentence("ended {target}: a sign-in code was used twice"),
    EventType.OAUTH_REFRESH_GRACE_USED: sentence("renewed {target} with a token used moments before"),
    EventType.OAUTH_REFRESH_REUSE_DETECTED: sentence("ended {target}: an old refresh token was used"),
    EventType.OAUTH_PERSON_REFUSED: sentence("ended {target}: the identity provider rejected the person"),
    EventType.MANAGEMENT_TOKEN_CREATED: sentence("created the management token {target}"),
    EventType.MANAGEMENT_TOKEN_FIRST_USED: sentence("used the management token {target} for the first time"),
    EventType.MANAGEMENT_TOKEN_REVOKED: sentence("revoked the management token {target}"),
    EventType.TRUSTED_ISSUER_ADDED: sentence("started trusting the identity provider {target}"),
    EventType.TRUSTED_ISSUER_REMOVED: sentence("stopped trusting the identity provider {target}"),
    EventType.TRUSTED_ISSUER_SUBJECT_LINKED: sentence("recognized {target} by an identity provider’s assertion"),
    EventType.MEMBER_ADDED: sentence("added {person}"),
    EventType.MEMBER_REMOVED: sentence("removed {target}"),
    EventType.MEMBER_ROLE_CHANGED: sentence("changed the role of {person}"),
    EventType.MEMBER_DEACTIVATED: sentence("deactivated {person}"),
    EventType.MEMBER_REACTIVATED: sentence("reactivated {person}"),
    EventType.MEMBER_SESSIONS_ENDED: sentence("ended sessions of {target}"),
    EventType.MEMBER_JOINED: sentence("joined through the mail domain"),
    EventType.JOIN_REQUESTED: sentence("asked to join"),
    EventType.JOIN_DECLINED: sentence("declined {target}’s request to join"),
    EventType.MAIL_DOMAIN_CLAIMED: sentence("claimed the mail domain {target}"),
    EventType.MAIL_DOMAIN_CONFIRMED: sentence("confirmed the mail domain {target}"),
    EventType.MAIL_DOMAIN_UPDATED: sentence("changed how people join through the mail domain {target}"),
    EventType.MAIL_DOMAIN_RELEASED: sentence("released the mail domain {target}"),
    EventType.INVITATION_CREATED: sentence("created an {target}"),
    EventType.INVITATION_SENT: sentence("sent an {target} again"),
    EventType.INVITATION_ACCEPTED: sentence("joined with an {target}"),
    EventType.INVITATION_REVOKED: sentence("revoked an {target}"),
    EventType.SERVER_ACCESS_GRANTED: sentence("gave {target} access to {vendor}"),
    EventType.SERVER_ACCESS_REVOKED: sentence("removed access to {vendor} from {target}"),
    EventType.SERVER_ACCESS_REPLACED: sentence("changed the vendors of {target}"),
    EventType.SERVER_ACCESS_EXPIRED: sentence("ended {target}’s access to {vendor} as scheduled"),
    EventType.ACCESS_REQUEST_CREATED: sentence("asked for access to {vendor}"),
    EventType.ACCESS_REQUEST_APPROVED: sentence("gave {person} the access to {vendor} they asked for"),
    EventType.ACCESS_REQUEST_DECLINED: sentence("declined access to {vendor} for {person}"),
    EventType.ACCESS_REQUEST_WITHDRAWN: sentence("withdrew a request for {vendor}"),
    EventType.TEAM_CREATED: sentence("created the team {team}"),
    EventType.TEAM_RENAMED: sentence("renamed the team {team}"),
    EventType.TEAM_DELETED: sentence("deleted the team {target}"),
    EventType.TEAM_MEMBER_ADDED: sentence("added a member to {team}"),
    EventType.TEAM_MEMBER_REMOVED: sentence("removed a member from {team}"),
    EventType.TOOL_ACCESS_UPDATED: sentence("changed the allowed tools of {target}"),
    EventType.TOOL_ACCESS_CLEARED: sentence("allowed every tool again for {target}"),
    EventType.ITEM_ACCESS_UPDATED: sentence("changed the allowed resources or prompts of {target}"),
    EventType.ITEM_ACCESS_CLEARED: sentence("removed a list of resources or prompts of {target}"),
    EventType.VENDOR_TOOLS_CHANGED: sentence("noticed changed tools at {vendor}"),
    EventType.VENDOR_TOOLS_APPROVED: sentence("approved tools of {vendor}"),
    EventType.VENDOR_CONNECTED: sentence("signed in to {vendor}"),
    EventType.VENDOR_CONNECTION_ENDED: sentence("ended a connection to {vendor}"),
    EventType.VENDOR_SIGN_IN_RULES_CHANGED: sentence("changed the sign-in rules of {vendor}"),
    EventType.VENDOR_QUESTION_RULES_CHANGED: sentence("changed the questions that {vendor} may ask"),
    EventType.VENDOR_SIGN_IN_NEEDED: sentence("found that {vendor} no longer accepts a connection"),
    EventType.VENDOR_SECRET_ECHOED: sentence("masked a credential in a response from {vendor}"),
    EventType.BILLING_ACTIVATED: sentence("activated the plan"),
    EventType.BILLING_LAPSED: sentence("ended the plan"),
    EventType.BILLING_UPDATED: sentence("changed the plan"),
    EventType.ALERT_SETTINGS_UPDATED: sentence("changed the alert settings"),
    EventType.ALERT_SECRET_ROTATED: sentence("rotated the signing secret of the alert webhook"),
    EventType.LOG_SHIPPING_CREATED: sentence("added the log destination {destination}"),
    EventType.LOG_SHIPPING_UPDATED: sentence("changed the log destination {destination}"),
    EventType.LOG_SHIPPING_DELETED: sentence("deleted the log destination {target}"),
    EventType.LOG_SHIPPING_REPLAYED: sentence("replayed the log to {destination}"),
    EventType.LOG_SHIPPING_DELIVERY_FAILED: sentence("could not deliver the log to {destination}"),
    EventType.LOG_SHIPPING_RECOVERED: sentence("delivers the log to {destination} again"),
    EventType.LOG_SHIPPING_RECORDS_SKIPPED: sentence("set aside records that {destination} refused"),
    EventType.SUPPORT_ORGANIZATION_READ: sentence("viewed the organization for support"),
    EventType.SUPPORT_ACTED: sentence("gave the reason for a support action on {target}"),
}


def parts_of(event_type: str, translate: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    """(text, name of a thing behind it or "") pairs. An event of another release is its own name."""
    words = WORDS.get(EventType(event_type)) if event_type in set(EventType) else None
    if words is None:
        yield f"{event_type}: ", "target"
        return
    for text, name, _, _ in Formatter().parse(translate(words)):
        yield text, name or ""
