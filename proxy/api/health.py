"""Health of the organization's vendors, from the monitor's stored states."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from gateway.web.api_view import OrgView
from gateway.web.fields import Timestamp
from gateway.web.gate import Gate
from gateway.web.operation import Operation
from orgs.roles import Role, TokenScope
from proxy.control_plane.health.selectors import vendor_health
from proxy.control_plane.health.states import HealthStatus
from proxy.vendors.circuit import CircuitState

STATUS_CHOICES = [status.value for status in HealthStatus]
CIRCUIT_CHOICES = [state.value for state in CircuitState]


class VendorHealthOut(serializers.Serializer[Any]):
    """One connected vendor. Spec: §2 Vendor health entry · D132"""

    vendorSlug = serializers.CharField(source="vendor_slug")
    displayName = serializers.CharField(source="display_name")
    status = serializers.ChoiceField(STATUS_CHOICES, help_text="Also unknown if the vendor is not monitored.")
    lastChecked = Timestamp(source="last_checked", allow_null=True)
    latencyMs = serializers.IntegerField(source="latency_ms", allow_null=True)
    version = serializers.CharField(help_text="As reported by the vendor; empty if it did not say.")
    errorDetail = serializers.CharField(
        source="error_detail", allow_null=True, help_text="Present only while the status is degraded or down."
    )
    protocolVersion = serializers.CharField(
        source="protocol_version",
        help_text="The MCP revision that calls to the vendor use; empty until the vendor was first asked.",
    )
    protocolVersionAt = Timestamp(
        source="protocol_version_at", allow_null=True, help_text="When the vendor was asked for its revision."
    )
    circuit = serializers.ChoiceField(
        CIRCUIT_CHOICES,
        source="circuit_state",
        help_text="closed: calls are sent; open: none are, after repeated failures; half_open: one trial call is.",
    )
    circuitRetryAt = Timestamp(
        source="retry_at", allow_null=True, help_text="When the open circuit allows a trial call; null while closed."
    )


class VendorsOut(serializers.Serializer[Any]):
    """The connected vendors by display name."""

    vendors = VendorHealthOut(many=True)


class VendorHealthList(OrgView):
    """GET /api/orgs/:orgId/vendor-health. Spec: §4.1 · D132, D133"""

    gates = {"GET": Gate(Role.MEMBER, token=TokenScope.READ)}
    operations = {"GET": Operation("Get the health of connected vendors, by name", answer=VendorsOut)}

    def get(self, request: Request, org_id: str) -> Response:
        # Cached states: a read never probes a vendor.
        return self.answer({"vendors": vendor_health(self.organization)})
