"""Django's own handler serves the same views: wire checks of the other modules once more, and answers side by side."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from django.core.handlers.asgi import ASGIHandler
from django.http import HttpResponse
from django.test import override_settings

from gateway.asgi import application
from gateway.hot_path_request import HotPathRequest
from gateway.lib import body_budgets
from gateway.lib.byte_budget import FREE_BYTES
from proxy.views.under_django import _as_django_response
from tests.api.proxy import (
    streams,
    test_cli_call,
    test_giving_up,
    test_mcp_call,
    test_mcp_http,
    test_mcp_versions,
    test_progress,
)
from tests.api.proxy.conftest import Agent, access_token, headers
from tests.api.proxy.streams import post_scope
from tests.factories.tenant import Tenant
from tests.factories.threads import in_thread

# The same checks as in their own modules, with the handler of `served_by`.
CHECKS = (
    test_mcp_http.test_one_method_for_each_route,
    test_mcp_http.test_bodies_are_json_by_name,
    test_mcp_http.test_a_preflight_is_answered_without_a_bearer,
    test_mcp_http.test_a_foreign_origin_or_host_is_refused_on_every_route,
    test_mcp_http.test_what_never_reaches_its_view_is_answered_in_its_shape_all_the_same,
    test_mcp_http.test_what_is_refused_after_authentication_counts_as_a_request,
    test_mcp_http.test_a_body_of_the_largest_size_is_read,
    test_mcp_http.test_every_header_that_answers_carry_is_exposed,
    test_mcp_versions.test_batches_in_versions_that_have_them,
    test_mcp_call.test_a_call_walks_the_whole_product,
    test_mcp_call.test_a_writing_tool_leaves_its_intent_before_it_is_sent,
    test_mcp_call.test_each_call_of_a_batch_has_a_row_of_its_own_times,
    test_cli_call.test_success_in_plain_json,
    test_cli_call.test_401_without_or_with_a_wrong_bearer_and_with_an_agent_key,
    test_cli_call.test_403_for_every_rule,
    test_cli_call.test_422_when_the_tool_fails,
    test_progress.test_reports_come_in_order_and_the_response_last,
    test_progress.test_headers_of_a_stream,
    test_progress.test_reports_arrive_while_the_tool_runs,
    test_progress.test_who_leaves_ends_the_call,
    test_giving_up.test_who_leaves_without_a_stream_ends_the_call,
)
globals().update({check.__name__: check for check in CHECKS})
reporting, warm = test_progress.reporting, test_giving_up.warm

CHANGING = frozenset({"x-auth-ms", "x-session-ms", "x-vendor-ms", "x-total-ms"})
# Each request to either handler counts; the limits themselves are compared.
COUNTED = frozenset({"ratelimit", "x-ratelimit-remaining", "x-ratelimit-reset"})


class TidyHandler(ASGIHandler):
    """Django's handler leaves the body of a client that disconnected to the garbage collector, which warns."""

    def __init__(self) -> None:
        super().__init__()
        self.bodies: list[Any] = []

    async def read_body(self, receive: Any) -> Any:
        self.bodies.append(await super().read_body(receive))
        return self.bodies[-1]


def django_handler() -> TidyHandler:
    """As `get_asgi_application` makes it, with the site's URLconf and without the middleware of pages."""
    with override_settings(MIDDLEWARE=[]):
        return TidyHandler()


@pytest.fixture
def served_by(monkeypatch: pytest.MonkeyPatch) -> Iterator[ASGIHandler]:
    """Every client and stream of this module."""
    handler = django_handler()
    monkeypatch.setattr(streams, "application", handler)
    yield handler
    for body in handler.bodies:
        body.close()


def rpc(method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": "one", "method": method, "params": params or {}}


LIST = {"name": "fake_list", "arguments": {"site": "hq"}}
REQUESTS: dict[str, tuple[str, str, Any]] = {
    "initialize": ("POST", "/v1/mcp", rpc("initialize", {"protocolVersion": "2025-06-18"})),
    "list": ("POST", "/v1/mcp", rpc("tools/list")),
    "call": ("POST", "/v1/mcp", rpc("tools/call", LIST)),
    "call, spelled otherwise": ("POST", "/v1/mcp/", rpc("tools/call", LIST)),
    "progress": ("POST", "/v1/mcp", rpc("tools/call", {**LIST, "_meta": {"progressToken": 1}})),
    "failing tool": ("POST", "/v1/mcp", rpc("tools/call", {"name": "fake_fail"})),
    "unknown tool": ("POST", "/v1/mcp", rpc("tools/call", {"name": "fake_nothing"})),
    "notification": ("POST", "/v1/mcp", {"jsonrpc": "2.0", "method": "notifications/initialized"}),
    "batch": ("POST", "/v1/mcp", [rpc("ping"), rpc("tools/call", LIST)]),
    "empty batch": ("POST", "/v1/mcp", []),
    "no JSON-RPC": ("POST", "/v1/mcp", {"id": 1}),
    "wrong method": ("GET", "/v1/mcp", None),
    "vendor's endpoint": ("POST", "/v1/fake/mcp", rpc("tools/call", LIST)),
    "unknown vendor": ("POST", "/v1/nonesuch/mcp", rpc("ping")),
    "command": ("POST", "/v1/fake/cli", {"tool": "list", "args": {"site": "hq"}}),
    "failing command": ("POST", "/v1/fake/cli", {"tool": "fail"}),
    "unknown command": ("POST", "/v1/fake/cli", {"tool": "nothing"}),
    "commands": ("GET", "/v1/fake/cli/schema", None),
    "preflight": ("OPTIONS", "/v1/mcp", None),
    "write": ("POST", "/v1/mcp", rpc("tools/call", {"name": "fake_write"})),
}


@pytest.mark.parametrize("bearer", ["jwt", "vendor's jwt", "key", "another organization's", "wrong", None])
async def test_both_handlers_answer_alike(
    agent: Agent, tenant: Tenant, other_tenant: Tenant, jwt: str, bearer: str | None, served_by: ASGIHandler
) -> None:
    bearers = {
        "jwt": jwt,
        "vendor's jwt": await in_thread(lambda: access_token(tenant, "mcp:fake")),
        "key": tenant.agent_key,
        "another organization's": other_tenant.agent_key,
        "wrong": "wrong",
        None: None,
    }
    statuses = set()
    sent = headers(bearers[bearer], {"X-Request-Id": "mine", "Origin": "http://localhost:6274"})
    await ask(application, *REQUESTS["command"], sent)  # keeps a result until the write at the end
    for name, (method, path, body) in REQUESTS.items():
        own, django = [await ask(served, method, path, body, sent) for served in (application, served_by)]
        assert django == own, name
        statuses.add(own[0])
    assert len(statuses) > 1


async def ask(
    served: Any, method: str, path: str, body: Any, sent: dict[str, str]
) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of the answer; of headers that differ between any two requests, only the names."""
    transport = httpx.ASGITransport(app=served)
    async with httpx.AsyncClient(transport=transport, base_url="http://testserver") as http:
        answer = await http.request(method, path, json=body, headers=sent)
    found = {name: "" if name in CHANGING | COUNTED else value for name, value in answer.headers.items()}
    return answer.status_code, found, answer.content


async def test_a_large_body_counts_until_its_answer_is_sent(agent: Agent, tenant: Tenant) -> None:
    held = []

    class Watched(httpx.AsyncByteStream):
        async def __aiter__(self) -> Any:
            yield b'{"jsonrpc":"2.0","id":1,"method":"ping","x":"' + b"x" * 2 * FREE_BYTES + b'"}'

    load_body = HotPathRequest.load_body

    async def loaded(request: HotPathRequest) -> bytes:
        body = await load_body(request)
        held.append(body_budgets.inbound().held_by(tenant.organization.id))
        return body

    sent = {"Content-Type": "application/json", **headers(tenant.agent_key, {})}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HotPathRequest, "load_body", loaded)
        answer = await agent.http.post("/v1/mcp", content=Watched(), headers=sent)
    assert answer.json()["result"] == {}
    assert held[0] > 2 * FREE_BYTES
    assert body_budgets.inbound().held == 0


async def test_a_response_that_is_dropped_gives_its_bytes_back() -> None:
    """Django drops the response of a client that leaves between the view and the first byte."""
    request = HotPathRequest(post_scope("/v1/mcp", []))
    request.count_response_bytes(2 * FREE_BYTES)
    response = _as_django_response(HttpResponse(b"answer"), request)
    assert body_budgets.vendors().held == 2 * FREE_BYTES
    del response
    gc.collect()
    assert body_budgets.vendors().held == 0


async def test_who_leaves_before_the_view_begins_is_not_answered(tenant: Tenant, served_by: ASGIHandler) -> None:
    received = asyncio.Queue[dict[str, Any]]()
    received.put_nowait({"type": "http.request", "body": b"{", "more_body": True})
    received.put_nowait({"type": "http.disconnect"})
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    await served_by(post_scope("/v1/mcp", [(b"host", b"testserver")]), received.get, send)
    assert not sent
