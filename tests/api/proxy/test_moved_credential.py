"""A sealed credential copied into another organization's row opens nothing there. Spec: D68"""

from __future__ import annotations

import pytest

from audit.models import RequestAuditEntry
from credentials.models import Credential, OrganizationDataKey
from gateway.coordination import backend, epochs
from tests.api.proxy.conftest import Agent, access_token
from tests.factories.tenant import Tenant, connect
from tests.factories.threads import in_thread
from tests.fakes.vendor import FakeVendor


def _move(source: Tenant, target: Tenant, *, with_data_key: bool) -> None:
    """Copies a credential to another tenant, as a writer of the tables could. The next call everywhere sees it."""
    stolen = Credential.objects.get(organization=source.organization)
    Credential.objects.filter(organization=target.organization).update(
        sealed=bytes(stolen.sealed), data_key_version=stolen.data_key_version
    )
    if with_data_key:
        key = OrganizationDataKey.objects.get(organization=source.organization)
        OrganizationDataKey.objects.filter(organization=target.organization).update(
            key_id=key.key_id, wrapped_key=bytes(key.wrapped_key)
        )
    backend.current().bump_epochs([epochs.organization(target.organization.id)])


@pytest.mark.parametrize("with_data_key", [False, True], ids=["ciphertext", "ciphertext and data key"])
async def test_calls_fail_closed_and_the_vendor_hears_nothing(
    agent: Agent,
    tenant: Tenant,
    other_tenant: Tenant,
    vendor: FakeVendor,
    with_data_key: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    await in_thread(lambda: connect(other_tenant.organization, other_tenant.owner))
    jwt = await in_thread(lambda: access_token(other_tenant))
    assert (await agent.cli(jwt, "list")).status_code == 200
    heard = vendor.seen["tools/call"]
    await in_thread(lambda: _move(tenant, other_tenant, with_data_key=with_data_key))
    refused = await agent.cli(jwt, "list")
    assert (refused.status_code, list(refused.json())) == (403, ["error"])
    result = (await agent.call(other_tenant.agent_key, "fake_list")).json()
    assert "result" not in result or result["result"]["isError"] is True
    assert vendor.seen["tools/call"] == heard
    assert "right-key" not in refused.text + str(result)
    assert "credential_unusable" in caplog.text
    rows = await in_thread(
        lambda: list(RequestAuditEntry.objects.order_by("timestamp", "id").values_list("status", "error_code"))
    )
    assert rows[1:] == [("denied", "unusable_credentials")] * 2
    assert (await agent.call(tenant.agent_key, "fake_list")).json()["result"]["structuredContent"] == {}
