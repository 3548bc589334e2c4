"""A call that fails in several ways is refused at the step that the explanation names first."""

from __future__ import annotations

import uuid

import pytest
from django.conf import LazySettings

from credentials.models import Credential
from credentials.services.credentials import delete_credential
from gateway.coordination import backend
from gateway.coordination.rules import Rule
from oauth_ext.services.service_client_vendors import replace_client_vendors
from proxy.calls.decide import VENDOR_CHECKS, CallStep
from proxy.control_plane.explanation import explain_access
from proxy.vendors.shared_circuits import publish, vendor_wide
from tests.api.proxy.conftest import Agent
from tests.api.proxy.traces import rows
from tests.factories.catalog_text import load_catalog
from tests.factories.tenant import CATALOG, Tenant, connect, restrict_tools
from tests.factories.threads import in_thread
from tests.fakes.vendor import FakeVendor

TOOL = "fake_list"
# How the request log says at which step a call was refused.
REASONS = {
    CallStep.SERVER_ACCESS: "no_server_access",
    CallStep.CREDENTIAL: "no_credentials",
    CallStep.ALLOWLIST: "tool_not_allowed",
}


@pytest.fixture(autouse=True)
def _closed_circuit(tenant: Tenant) -> None:
    """Other tests of this process share the store, and their vendors have the same name."""
    publish(backend.current(), vendor_wide("fake"), None)


def restrict(tenant: Tenant, vendors: list[str] | None) -> None:
    replace_client_vendors(actor=tenant.owner, organization=tenant.organization, client=tenant.client, vendors=vendors)


def require_another_field(url: str) -> None:
    more = '[[vendor.fields]]\nname = "region"\nlabel = "Region"\nrequired = true\n'
    text = CATALOG.format(slug="fake", name="Fake", url=url, prefix="fake", timeout_s=5)
    load_catalog(text + more, "test catalog")


async def failing(tenant: Tenant) -> str | None:
    step = (await in_thread(lambda: explain_access(tenant.client.subject, TOOL))).failing
    return step and step.name


async def refused_at(agent: Agent, tenant: Tenant) -> str:
    answer = await agent.call(tenant.agent_key, TOOL)
    if answer.status_code == 429:
        return CallStep.QUOTA
    (row,) = [row for row in await rows() if row.request_id == answer.headers["X-Request-Id"]]
    return row.error_code


async def test_calls_and_explanations_go_through_the_steps_in_one_order(
    agent: Agent, tenant: Tenant, other_tenant: Tenant, settings: LazySettings
) -> None:
    def break_everything() -> None:
        backend.current().hit(settings.TOOL_CALLS, tenant.client.subject)
        restrict(tenant, [])
        restrict_tools(tenant.organization, "fake_write")
        delete_credential(actor=tenant.owner, credential=Credential.objects.get(organization=tenant.organization))

    repairs = {
        CallStep.SERVER_ACCESS: lambda: restrict(tenant, ["fake"]),
        CallStep.CREDENTIAL: lambda: connect(tenant.organization, tenant.owner),
        CallStep.ALLOWLIST: lambda: restrict_tools(tenant.organization, TOOL),
    }
    settings.TOOL_CALLS = Rule(f"tools-{uuid.uuid4().hex}", limit=1, window_s=3600)
    await in_thread(break_everything)
    assert await failing(tenant) == await refused_at(agent, tenant) == CallStep.QUOTA
    assert await failing(other_tenant) == CallStep.CREDENTIAL
    settings.TOOL_CALLS = Rule(f"tools-{uuid.uuid4().hex}", limit=100, window_s=3600)
    for step in [step for step in CallStep if step in repairs]:
        assert await failing(tenant) == step
        assert await refused_at(agent, tenant) == REASONS[step]
        await in_thread(repairs[step])
    assert await failing(tenant) is None
    assert await refused_at(agent, tenant) == ""
    assert await refused_at(agent, other_tenant) == REASONS[CallStep.CREDENTIAL]


async def test_a_credential_that_lacks_a_field_by_now_is_explained(
    agent: Agent, tenant: Tenant, vendor: FakeVendor
) -> None:
    assert await failing(tenant) is None
    await in_thread(lambda: require_another_field(vendor.url))
    assert await failing(tenant) == CallStep.CREDENTIAL
    assert await refused_at(agent, tenant) == "unusable_credentials"


def test_the_checks_of_a_vendor_have_the_order_of_the_steps() -> None:
    steps = [step for step, _ in VENDOR_CHECKS]
    assert steps == [step for step in CallStep if step in steps]
    assert steps == [CallStep.SERVER_ACCESS, CallStep.CREDENTIAL]
