"""The end of a person reaches the next call: with their own token, and with the agent keys that they were shown."""

from __future__ import annotations

from audit.actor import system
from oauth_ext.services.deactivation import deactivate_person, reactivate_person
from tests.api.oauth_ext.flow import make_flow
from tests.api.proxy.conftest import Agent
from tests.factories.cast import Cast
from tests.factories.tenant import Tenant
from tests.factories.threads import in_thread


async def test_the_next_call_is_refused_and_others_go_on(
    agent: Agent, tenant: Tenant, other_tenant: Tenant, committed_cast: Cast
) -> None:
    own, another = await in_thread(
        lambda: [make_flow(committed_cast, who).tokens()["access_token"] for who in ("owner", "admin")]
    )
    for bearer in (own, another, tenant.agent_key, other_tenant.agent_key):
        assert (await agent.call(bearer, "fake_list")).status_code == 200
    person = committed_cast.user("owner")
    await in_thread(lambda: deactivate_person(actor=system("test"), user_id=person.pk))
    for bearer, status in ((own, 401), (tenant.agent_key, 401), (another, 200), (other_tenant.agent_key, 200)):
        assert (await agent.call(bearer, "fake_list")).status_code == status
    await in_thread(lambda: reactivate_person(actor=system("test"), user_id=person.pk))
    assert (await agent.call(own, "fake_list")).status_code == 401
