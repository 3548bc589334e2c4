"""Two organizations about which tickets come in, and one browser of support staff."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client as Browser
from msgspec.structs import asdict

from audit.call_record import CallRecord
from audit.models import LogDestination, RequestAuditEntry
from billing.models import Subscription
from credentials.models import Credential
from gateway.coordination.sqlite_store import SQLiteStore
from gateway.lib import clock
from gateway.lib.ids import log_id_for
from orgs.models import ServerAccess
from orgs.services.invitations import create_invitation
from orgs.services.known_tools import record_tools
from orgs.services.members import remove_member
from proxy.control_plane.health import state_cache
from proxy.control_plane.health.states import HealthStatus
from tests.api.support.people import ACT, VIEW, staff_browser
from tests.factories.cast import Cast
from tests.factories.destinations import webhook_of
from tests.factories.health import put_health
from tests.factories.tenant import Tenant, connect, load_vendor, make_tenant

CLOSED = "http://127.0.0.1:9/mcp"  # a port without a listener


@dataclass
class Scene:
    """`others`: the agent of the other organization. `secrets`: texts that no page may show."""

    cast: Cast
    tenant: Tenant
    others: Tenant
    secrets: list[str]
    down_since: datetime


def add_call(cast: Cast, request_id: str, *, ago: timedelta = timedelta(minutes=5), **facts: Any) -> RequestAuditEntry:
    """A row of the request log, by default a success of the member at the vendor `fake`."""
    at = clock.now() - ago
    member = cast.user("member")
    values: dict[str, Any] = {
        "org_id": cast.org.id,
        "user_id": str(member.id),
        "user_label": member.name,
        "vendor": "fake",
        "tool": "lookup",
        "source": "mcp",
        "status": "success",
        "error_code": "",
        "duration_ms": 20,
        "request_id": request_id,
        "timestamp": at,
        **facts,
    }
    return RequestAuditEntry.objects.create(**{**asdict(CallRecord(**values)), "id": log_id_for(at)}, position=1)


@pytest.fixture
def scene(cast: Cast, shared: SQLiteStore, settings: Any) -> Scene:
    settings.BILLING_MODE = "manual"
    for slug in ("fake", "slow", "shut"):
        load_vendor(CLOSED, slug=slug)
        connect(cast.org, cast.user("owner"), slug, apiKey=f"hidden-key-of-{slug}")
        definition = b'{"annotations": {"readOnlyHint": true}, "inputSchema": {"type": "object"}, "name": "lookup"}'
        record_tools(organization=cast.org, vendor=slug, definitions={"lookup": definition})
    put_health(shared, "fake", HealthStatus.HEALTHY)
    # Stored before the calls that the vendor rejected.
    before = clock.now() - timedelta(days=3)
    Credential.objects.update(stored_at=before, updated_at=before)
    down_since = clock.now() - timedelta(hours=4)
    detail = "timed out after 5 s, 3 failures in a row"
    down = put_health(shared, "slow", HealthStatus.DOWN, error_detail=detail)
    state_cache.write(shared, "slow", replace(down, failing_since=down_since))
    ServerAccess.objects.create(organization=cast.org, membership=cast.user("member").memberships.get(), vendor="fake")
    tenant = make_tenant(cast.org, cast.user("owner"), "night bot")
    others = make_tenant(cast.other_org, cast.user("other_owner"), "their bot")
    scope = {"credential_scope": "organization"}
    add_call(cast, "req-ok", **scope)
    add_call(cast, "req-denied", vendor="shut", status="denied", error_code="no_server_access")
    for hours in (1, 30):
        add_call(
            cast,
            f"req-rejected-{hours}",
            ago=timedelta(hours=hours),
            vendor="shut",
            status="error",
            error_code="vendor_rejected_credentials",
            user_id=tenant.client.subject,
            user_label="night bot",
            **scope,
        )
    add_call(cast, "req-timeout", vendor="slow", status="error", error_code="vendor_timeout", **scope)
    add_call(cast, "req-theirs", org_id=cast.other_org.id, user_label="Someone else")
    link = create_invitation(actor=cast.user("owner"), organization=cast.org, email="new@example.com")
    remove_member(actor=cast.user("owner"), organization=cast.org, user_id=cast.user("admin").id)
    destination = webhook_of(cast.user("owner"), cast.org, secret="hidden-signing-secret")
    LogDestination.objects.filter(pk=destination.pk).update(
        status="failing", last_error="The platform answered HTTP 403", delivered=17
    )
    Subscription.objects.create(organization=cast.org, status="past_due", past_due_since=clock.now())
    hidden = [tenant.agent_key, tenant.client_secret, others.agent_key, "hidden-key-of-", "hidden-signing-secret"]
    hidden += [tenant.agent_key.rpartition("_")[2], link.token_sha256.hex()]
    return Scene(cast, tenant, others, hidden, down_since)


@pytest.fixture
def staff(scene: Scene) -> Browser:
    """Support staff who may read and act, and see no table."""
    return staff_browser(VIEW, ACT)
