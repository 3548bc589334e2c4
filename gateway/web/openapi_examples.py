"""Pure: examples of request bodies, put together from one example for each member's name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_ID = "6f1b1c1e-5d0c-4a53-9a0b-0d6d2b1f0a11"
# Of a vendor's own fields, which GET /api/vendors names.
VENDOR_FIELDS = {"apiKey": "the vendor's key"}
# By schema and member where the name alone says too little.
_OF_SCHEMA: Mapping[tuple[str, str], Any] = {
    ("OrganizationInput", "name"): "Northwind Traders",
    ("ManagementTokenInput", "name"): "Terraform",
    ("ServiceClientInput", "name"): "Triage bot",
    ("ServiceClientChange", "name"): "Triage bot",
    ("NamedKeyInput", "name"): "EU tenant",
    ("NamedKeyChange", "name"): "EU tenant",
    ("AccessEndInput", "expiresAt"): "2030-01-31",
    ("ServiceClientChange", "expires_at"): "2027-01-31",
}
_OF_MEMBER: Mapping[str, Any] = {
    "acceptAnyServer": False,
    "byMail": True,
    "acts_for_people": True,
    "compact_list": True,
    "algorithms": ["RS256"],
    "answer": "Only for the night shift",
    "client_ids": ["svc_0h2k4m6p8r0t2v4x6z8A0C2E"],
    "code": "AB12-CD34",
    "config": {},
    "coupon": "SPRING",
    "defaultServerAccess": "all",
    "displayName": "Ana",
    "email": "ana@example.com",
    "emails": ["ana@example.com", "leo@example.com"],
    "enabled": True,
    "endpointUrl": "https://logs.example.com/hook",
    "expiresAt": "2030-01-31",
    "expiresInDays": 7,
    "elicitation": True,
    "entries": ["file:///notes.md", "file:///docs/{name}"],
    "expires_at": "2027-01-31",
    "expires_in_days": 90,
    "fields": VENDOR_FIELDS,
    "firstName": "Ana",
    "issuer": "https://acme.okta.com",
    "jwks_url": "https://acme.okta.com/oauth2/v1/keys",
    "kinds": ["vendor_down", "credential_rejected"],
    "label": "SIEM",
    "lastName": "Lima",
    "maxUses": 1,
    "mode": "read_only",
    "name": "Night shift",
    "org_id": _ID,
    "overlap_hours": 24,
    "peopleMayConnect": True,
    "platform": "webhook",
    "quietFrom": "22:00",
    "quietUntil": "06:00",
    "reason": "For the night shift",
    "responsible_user_id": _ID,
    "role": "admin",
    "roots": False,
    "sampling": False,
    "scope": "admin",
    "scopes": ["read"],
    "since": "2026-01-31",
    "stepDownTo": "admin",
    "timeZone": "Europe/Berlin",
    "teamId": _ID,
    "teams": [_ID],
    "tenant": "acme",
    "tools": ["acme_list_devices"],
    "vendor": "acme",
    "vendors": ["acme"],
    "webhookUrl": "https://alerts.example.com/hook",
}


def example_of(name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """A body of the schema `name`. A member without an example is left out."""
    found = {member: _OF_SCHEMA.get((name, member), _OF_MEMBER.get(member)) for member in schema.get("properties", {})}
    return {member: value for member, value in found.items() if value is not None}
