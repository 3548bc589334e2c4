"""Pure: an event in the Elastic Common Schema. Other fields are below `mcp_gateway`. docs/log-shipping.md"""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any, Final

from audit.shipping.events import Event
from audit.shipping.platforms.changes import Change, change_of, noun_of
from audit.shipping.platforms.encoding import json_text

ECS_VERSION: Final = "8.11.0"
OWN: Final = "mcp_gateway"
FIELDS: Final = {
    "orgId": "organization.id",
    "userId": "user.id",
    "userLabel": "user.name",
    "vendor": f"{OWN}.vendor",
    "tool": f"{OWN}.tool",
    "kind": f"{OWN}.kind",
    "item": f"{OWN}.item",
    "source": f"{OWN}.source",
    "status": f"{OWN}.status",
    "errorCode": "error.code",
    "durationMs": "event.duration",
    "vendorMs": f"{OWN}.vendor_ms",
    "credentialScope": f"{OWN}.credential.scope",
    "credentialName": f"{OWN}.credential.name",
    "cached": f"{OWN}.cached",
    "clientId": f"{OWN}.client.id",
    "clientName": f"{OWN}.client.name",
    "ipAddress": "source.address",
    "requestId": "http.request.id",
    "requestBytes": "http.request.body.bytes",
    "responseBytes": "http.response.body.bytes",
    "count": f"{OWN}.count",
    "eventType": "event.action",
    "actorId": "user.id",
    "actorLabel": "user.name",
    "targetId": f"{OWN}.target.id",
    "targetLabel": f"{OWN}.target.name",
    "metadata": f"{OWN}.metadata",
}
_PATHS = {name: tuple(path.split(".")) for name, path in FIELDS.items()}
_OUTCOMES = {"success": "success", "error": "failure", "denied": "failure"}
_TYPES = {Change.CREATION: "creation", Change.DELETION: "deletion", Change.UPDATE: "change"}
# Events about who may do what are of the category iam, all others of the category configuration.
_IAM = frozenset(
    "access_request agent_key device invitation join_request mail_domain member oauth server_access service_client"
    " team trusted_issuer".split()
)
_NANOSECONDS = 1_000_000


def ecs_document(event: Event) -> dict[str, Any]:
    """Nested objects, without `@timestamp`, which each platform writes in its own way."""
    document: dict[str, Any] = {"ecs": {"version": ECS_VERSION}, "event": _categories(event)}
    for name, value in event.fields.items():
        _put(document, _PATHS.get(name, (OWN, name)), _as_ecs(name, value))
    address = event.fields.get("ipAddress", "")
    if _is_ip(address):
        _put(document, ("source", "ip"), address)
    return document


def _categories(event: Event) -> dict[str, Any]:
    named = {"id": event.id, "kind": "event", "module": OWN, "dataset": f"{OWN}.{event.type}"}
    if event.is_tool_call:
        status = event.fields.get("status", "")
        verdict = "denied" if status == "denied" else "allowed"
        outcome = _OUTCOMES.get(status, "unknown")
        return {**named, "category": ["api"], "type": ["access", verdict], "action": event.type, "outcome": outcome}
    event_type = event.fields.get("eventType", "")
    category = "iam" if noun_of(event_type) in _IAM else "configuration"
    return {**named, "category": [category], "type": [_TYPES[change_of(event_type)]]}


def _as_ecs(name: str, value: Any) -> Any:
    if name == "durationMs":
        return value * _NANOSECONDS
    if name == "metadata":
        # As a text: a key whose values are a number once and a list later would make a mapping refuse the record.
        return json_text(value)
    return value


def _put(document: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    *parents, last = path
    for parent in parents:
        document = document.setdefault(parent, {})
    document[last] = value


def _is_ip(text: str) -> bool:
    """The type `ip` of a mapping refuses a record with anything else, a zone included."""
    try:
        ip_address(text)
    except ValueError:
        return False
    return "%" not in text
