"""The answers of the usage dashboards. Spec: §4.11 · D88, D89, D138, D150"""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from gateway.web.fields import Timestamp


class PeriodOut(serializers.Serializer[Any]):
    """Both ends are inclusive."""

    start = Timestamp(help_text="If no start is given, the first day with a call.")
    end = Timestamp()


class _CallsOut(serializers.Serializer[Any]):
    totalCalls = serializers.IntegerField(source="total.calls", help_text="Refused calls are not included.")
    uniqueUsers = serializers.IntegerField(source="user_count")
    avgResponseTimeMs = serializers.IntegerField(source="total.average_ms", help_text="For calls with an outcome.")
    p50ResponseTimeMs = serializers.IntegerField(source="percentiles.p50_ms", help_text="Within 5%.")
    p95ResponseTimeMs = serializers.IntegerField(source="percentiles.p95_ms", help_text="Within 5%.")
    errors = serializers.IntegerField(  # type: ignore[assignment]
        source="total.errors", help_text="Part of `totalCalls`."
    )
    denied = serializers.IntegerField(source="total.denied", help_text="Refused calls; not included in `totalCalls`.")
    rateLimited = serializers.IntegerField(
        source="total.rate_limited", help_text="Calls above a limit; included in neither `totalCalls` nor `denied`."
    )


class VendorCallsOut(serializers.Serializer[Any]):
    vendor = serializers.CharField()
    calls = serializers.IntegerField()


class UserCallsOut(serializers.Serializer[Any]):
    userId = serializers.CharField(source="user_id")
    userLabel = serializers.CharField(source="user_label", help_text="Time of the latest call.")
    calls = serializers.IntegerField()


class DayCallsOut(serializers.Serializer[Any]):
    date = serializers.DateField(source="day")
    calls = serializers.IntegerField(source="total.calls")


class SourceCallsOut(serializers.Serializer[Any]):
    mcp = serializers.IntegerField()
    cli = serializers.IntegerField()


class UsageOut(_CallsOut):
    """Calls of the organization. The lists begin with the most calls."""

    range = PeriodOut(source="*")
    byVendor = VendorCallsOut(many=True, source="vendors")
    byUser = UserCallsOut(many=True, source="users")
    byDay = DayCallsOut(many=True, source="days", help_text="In UTC, oldest first; days without calls are omitted.")
    bySource = SourceCallsOut(source="*")


class ToolCallsOut(serializers.Serializer[Any]):
    tool = serializers.CharField()
    calls = serializers.IntegerField()


class VendorUsageOut(_CallsOut):
    """One vendor."""

    vendor = serializers.CharField()
    displayName = serializers.CharField(source="display_name")
    topTools = ToolCallsOut(many=True, source="tools", help_text="The five most called tools.")


class VendorsUsageOut(serializers.Serializer[Any]):
    """Vendors with calls, the most called first."""

    vendors = VendorUsageOut(many=True)


class MeasuredOut(serializers.Serializer[Any]):
    """Bytes behind the estimate."""

    toolListBytes = serializers.IntegerField(
        source="tool_list_bytes", help_text="Size of the tool lists that command-line callers did not load."
    )
    cliResponseBytes = serializers.IntegerField(source="cli_response_bytes", help_text="Results of CLI calls.")
    mcpResponseBytes = serializers.IntegerField(source="mcp_response_bytes", help_text="Results of MCP calls.")
    savedShare = serializers.FloatField(
        source="saved_share",
        help_text="`toolListBytes` as a share of `toolListBytes` plus `cliResponseBytes`, from 0 to 1.",
    )


class SavingsOut(serializers.Serializer[Any]):
    """Heuristic estimates: once per caller, vendor and day, a CLI caller did not load the vendor's tool list."""

    totalMcpCalls = serializers.IntegerField(source="mcp_calls")
    totalCliCalls = serializers.IntegerField(source="cli_calls")
    estimatedTokensSaved = serializers.IntegerField(source="tokens")
    estimatedCostSavedUsd = serializers.FloatField(source="usd")
    measured = MeasuredOut(source="*")
