"""Calls of a service client that acts for a person: the rights of both, and both in the log. docs/decisions/0109"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from audit.models import RequestAuditEntry
from gateway.lib import clock
from oauth_ext.models import Client, ServiceClientVendor
from oauth_ext.services.acting import set_acting
from oauth_ext.services.service_client_allowlists import set_client_allowlist, set_tool_mode
from oauth_ext.services.service_client_vendor_changes import change_client_vendors
from oauth_ext.services.service_client_vendors import replace_client_vendors
from oauth_ext.services.service_clients import rotate_client_secret
from orgs.services.server_access import add_member_vendor, remove_member_vendor
from tests.api.oauth_ext.conftest import Service
from tests.api.oauth_ext.flow import make_flow
from tests.api.oauth_ext.test_token_exchange import exchange
from tests.api.proxy.conftest import Agent
from tests.api.proxy.test_effects_at_once import is_refused, listed
from tests.api.proxy.traces import rows
from tests.factories.cast import Cast
from tests.factories.catalog import load_vendors
from tests.factories.tenant import Tenant, restrict_tools
from tests.factories.threads import in_thread
from tests.fakes.vendor import FakeVendor

ALL = {"fake_list", "fake_write", "fake_fail"}


class Acting:
    """The tenant's agent with a token for which a person of `who` is the subject."""

    def __init__(self, tenant: Tenant, cast: Cast, who: str) -> None:
        self.tenant, self.cast = tenant, cast
        self.whose: dict[str, Any] = {
            "actor": tenant.owner,
            "organization": tenant.organization,
            "client": tenant.client,
        }
        set_acting(**self.whose, acts_for_people=True)
        made = rotate_client_secret(actor=tenant.owner, client=tenant.client)
        self.service = Service(made.client, made.client_secret)
        self.person = cast.user(who)
        self.subject = make_flow(cast, who).tokens()["access_token"]
        self.token = str(exchange(self.service, self.subject).json()["access_token"])


@pytest.fixture
async def acting(agent: Agent, tenant: Tenant, committed_cast: Cast) -> Acting:
    return await in_thread(lambda: Acting(tenant, committed_cast, "owner"))


async def test_the_log_has_the_person_and_the_agent(agent: Agent, acting: Acting, vendor: FakeVendor) -> None:
    assert not await is_refused(agent, acting.token, "fake_list")
    row: RequestAuditEntry = (await rows())[-1]
    assert (row.user_id, row.user_label) == (str(acting.person.pk), acting.person.label)
    assert (row.client_id, row.client_name) == (acting.service.client.client_id, "build bot")


async def test_limits_of_the_agent_count_at_once(agent: Agent, acting: Acting) -> None:
    assert await listed(agent, acting.token) == ALL
    await in_thread(lambda: set_client_allowlist(**acting.whose, vendor="fake", tools=["fake_list", "fake_write"]))
    assert await listed(agent, acting.token) == {"fake_list", "fake_write"}
    answer = await agent.call(acting.token, "fake_fail")
    assert "The service client build bot isn't allowed to call fake_fail." in answer.text
    await in_thread(lambda: set_tool_mode(**acting.whose, mode="read_only"))
    assert await listed(agent, acting.token) == {"fake_list"}
    # The person's own app keeps the person's rights.
    assert await listed(agent, acting.subject) == ALL


async def test_the_role_of_agents_counts_beside_the_persons(agent: Agent, acting: Acting) -> None:
    await in_thread(lambda: restrict_tools(acting.tenant.organization, "fake_list"))
    assert await listed(agent, acting.subject) == ALL
    assert await listed(agent, acting.token) == {"fake_list"}
    assert await is_refused(agent, acting.token, "fake_write")
    assert not await is_refused(agent, acting.subject, "fake_write")


async def test_vendors_of_the_agent_and_their_end(agent: Agent, acting: Acting) -> None:
    await in_thread(lambda: load_vendors("other"))
    await in_thread(lambda: replace_client_vendors(**acting.whose, vendors=["other"]))
    assert await is_refused(agent, acting.token, "fake_list")
    assert not await is_refused(agent, acting.subject, "fake_list")
    await in_thread(lambda: replace_client_vendors(**acting.whose, vendors=["fake"]))
    assert not await is_refused(agent, acting.token, "fake_list")
    pair = {(acting.service.client.pk, "fake")}
    matrix: dict[str, Any] = {"actor": acting.tenant.owner, "organization": acting.tenant.organization}
    await in_thread(lambda: change_client_vendors(**matrix, added=set(), removed=pair))
    assert await is_refused(agent, acting.token, "fake_list")
    await in_thread(lambda: change_client_vendors(**matrix, added=pair, removed=set()))
    assert not await is_refused(agent, acting.token, "fake_list")
    soon = clock.now() + timedelta(seconds=1)
    await in_thread(lambda: ServiceClientVendor.objects.update(expires_at=soon))
    await in_thread(lambda: set_tool_mode(**acting.whose, mode="read_only"))
    assert not await is_refused(agent, acting.token, "fake_list")
    await asyncio.sleep(1.1)
    assert await is_refused(agent, acting.token, "fake_list")
    assert not await is_refused(agent, acting.subject, "fake_list")


async def test_limits_of_the_person(agent: Agent, tenant: Tenant, committed_cast: Cast) -> None:
    acting = await in_thread(lambda: Acting(tenant, committed_cast, "member"))
    whose: dict[str, Any] = {"actor": tenant.owner, "organization": tenant.organization, "user_id": acting.person.pk}
    await in_thread(lambda: add_member_vendor(**whose, vendor="fake"))
    assert not await is_refused(agent, acting.token, "fake_list")
    await in_thread(lambda: remove_member_vendor(**whose, vendor="fake"))
    assert await is_refused(agent, acting.token, "fake_list")


async def test_the_end_of_the_permission_is_seen_by_the_next_call(agent: Agent, acting: Acting) -> None:
    assert not await is_refused(agent, acting.token, "fake_list")
    await in_thread(lambda: set_acting(**acting.whose, acts_for_people=False))
    assert (await agent.call(acting.token, "fake_list")).status_code == 401
    assert not await is_refused(agent, acting.subject, "fake_list")


async def test_a_permission_that_is_gone_from_the_row_ends_tokens_too(agent: Agent, acting: Acting) -> None:
    await in_thread(lambda: Client.objects.filter(pk=acting.service.client.pk).update(acts_for_people=False))
    assert (await agent.call(acting.token, "fake_list")).status_code == 401
