"""The page of one request: each of its calls, what decided it, and at whose end the fault is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from django.http import HttpRequest, HttpResponse

from audit.call_status import CallStatus
from audit.filters import Filters
from audit.matching import matching_entries
from audit.models import RequestAuditEntry
from audit.newest_first import NewestFirst
from gateway.catalog import registry
from gateway.lib.errors import NotFound
from gateway.lib.request_ids import is_request_id
from gateway.support.page import SupportPage
from proxy.calls.decide import CallStep
from proxy.control_plane.explanation import Explanation, Step, explain_access
from proxy.protocol.tool_names import exposed_name

SHOWN = 50
CALLER, ACCESS, CREDENTIAL, VENDOR, SERVICE, TOOL = (
    "the caller",
    "the organization’s access rules",
    "the credential",
    "the vendor",
    "this service",
    "the tool’s input or the tool",
)
# By error code: at whose end the fault is, and the stage that ended the call.
ENDS: Mapping[str, tuple[str, CallStep | None]] = {
    "insufficient_scope": (CALLER, CallStep.BEARER),
    "rate_limited": (CALLER, CallStep.QUOTA),
    "unknown_vendor": (CALLER, CallStep.SERVER_ACCESS),
    "no_server_access": (ACCESS, CallStep.SERVER_ACCESS),
    "no_credentials": (ACCESS, CallStep.CREDENTIAL),
    "unusable_credentials": (CREDENTIAL, CallStep.CREDENTIAL),
    "tool_not_allowed": (ACCESS, CallStep.ALLOWLIST),
    "item_not_allowed": (ACCESS, CallStep.ALLOWLIST),
    "unknown_item": (CALLER, CallStep.ALLOWLIST),
    "unknown_tool": (CALLER, CallStep.ALLOWLIST),
    "bad_arguments": (CALLER, None),
    "client_closed": (CALLER, None),
    "vendor_rejected_credentials": (CREDENTIAL, CallStep.VENDOR),
    "vendor_scope_needed": (CREDENTIAL, CallStep.VENDOR),
    "vendor_unavailable": (VENDOR, CallStep.VENDOR),
    "vendor_timeout": (VENDOR, CallStep.VENDOR),
    "bad_vendor_response": (VENDOR, CallStep.VENDOR),
    "vendor_error": (VENDOR, CallStep.VENDOR),
    "tool_error": (TOOL, CallStep.VENDOR),
    "gateway_stopped": (SERVICE, None),
    "internal_error": (SERVICE, None),
}


@dataclass(frozen=True, slots=True)
class Stage:
    """A check of the call. `outcome`: passed, failed, or not reached; "" where the log does not tell."""

    title: str
    outcome: str


@dataclass(frozen=True, slots=True)
class Call:
    entry: RequestAuditEntry
    vendor_name: str
    fault: str
    stages: tuple[Stage, ...]
    exposed_tool: str


class RequestPage(SupportPage):
    """GET /admin/support/organizations/:orgId/requests/:requestId"""

    def get(self, request: HttpRequest, org_id: UUID, request_id: str) -> HttpResponse:
        if not is_request_id(request_id):
            raise NotFound
        organization = self.read_organization(org_id)
        wanted = Filters(equal={"request_id": request_id})
        rows = list(matching_entries(RequestAuditEntry, org_id, wanted).order_by(NewestFirst())[:SHOWN])
        if not rows:
            raise NotFound
        calls = [call_of(row) for row in rows]
        context = {
            "organization": organization,
            "request_id": request_id,
            "calls": calls,
            "now": _as_of_now(calls[0], org_id),
        }
        return self.page("support/request.html", "Request", context)


def call_of(entry: RequestAuditEntry) -> Call:
    vendor = registry.vendor_or_none(entry.vendor)
    fault, ended_at = ENDS.get(entry.error_code, ("", None))
    tool = exposed_name(vendor.tool_prefix, entry.tool) if vendor and entry.tool else entry.tool
    return Call(entry, vendor.name if vendor else entry.vendor, fault, _stages(entry, ended_at), tool)


def _stages(entry: RequestAuditEntry, ended_at: CallStep | None) -> tuple[Stage, ...]:
    if entry.status == CallStatus.SUCCESS:
        return tuple(Stage(_title(step), "passed") for step in CallStep)
    if ended_at is None:
        return ()
    at = list(CallStep).index(ended_at)
    outcomes = ["passed"] * at + ["failed"] + ["not reached"] * (len(CallStep) - at - 1)
    return tuple(Stage(_title(step), outcome) for step, outcome in zip(CallStep, outcomes, strict=True))


def _title(step: CallStep) -> str:
    return Step(step.value, True, "").title


def _as_of_now(call: Call, org_id: UUID) -> Explanation | None:
    """The checks that the same call would meet now; None for a call without a tool."""
    if not call.exposed_tool:
        return None
    return explain_access(call.entry.user_id, call.exposed_tool, org_id=org_id, shows_count=False)
