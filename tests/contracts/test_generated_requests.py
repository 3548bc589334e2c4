"""Requests that nobody thought of, generated from the OpenAPI document: no 5xx, nothing undocumented.

API_EXAMPLES requests per operation in our organization, and as many anywhere, 4 unless the environment says otherwise.
"""

from __future__ import annotations

import importlib
import io
import os
from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest
import requests
import urllib3
from django.db import transaction
from django.test import Client as Browser
from hypothesis import HealthCheck, Phase, given, settings

from gateway.coordination.rules import Rule
from gateway.coordination.store import Admission
from gateway.site.api_docs import document
from gateway.web import rate
from orgs.roles import TokenScope
from tests.contracts.test_routes import World, world, world_of_module  # noqa: F401
from tests.factories.management_tokens import bearer_of, made_token
from tests.factories.streamed import body_of

EXAMPLES = int(os.environ.get("API_EXAMPLES", "4"))
# The routes that report somebody else's failure as their own answer: the vendor and the payment provider of this world
# are away.
REPORT_OTHERS = ("/discover", "/items", "/billing/checkout", "/billing/portal")
METHODS = {"get", "post", "put", "patch", "delete"}
LABELS = [
    f"{method.upper()} {path}" for path, item in document()["paths"].items() for method in item if method in METHODS
]


@cache
def operations() -> dict[str, Any]:
    """By label. Schemathesis is imported where its tests run: it takes two seconds."""
    schema = importlib.import_module("schemathesis").openapi.from_dict(dict(document()))
    found = {each.label: each for each in (result.ok() for result in schema.get_all_operations())}
    assert sorted(found) == sorted(LABELS)
    return found


@cache
def checks() -> list[Any]:
    """All that apply to every operation, `not_a_server_error` last."""
    openapi = importlib.import_module("schemathesis.specs.openapi.checks")
    return [
        openapi.status_code_conformance,
        openapi.content_type_conformance,
        openapi.response_schema_conformance,
        importlib.import_module("schemathesis.checks").not_a_server_error,
    ]


@pytest.fixture
def unlimited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits have tests of their own; here they would hide what lies behind them."""

    def count(request: object, rule: Rule) -> Admission:
        return Admission(rule, True, rule.limit - 1, 0, None)

    monkeypatch.setattr(rate, "count", count)


def answer_to(browser: Browser, case: Any, more: Mapping[str, str] | None = None) -> requests.Response:
    """Sent through Django's test client, which shares the test's transaction. `more`: headers in place of its own."""
    wanted = requests.Request(**case.as_transport_kwargs(base_url="http://testserver")).prepare()
    browser.raise_request_exception = False
    body = wanted.body.encode() if isinstance(wanted.body, str) else wanted.body or b""
    headers = {
        name: value for name, value in wanted.headers.items() if name.lower() not in {"cookie", "content-length"}
    }
    sent = {name: value.decode() if isinstance(value, bytes) else value for name, value in headers.items()}
    sent |= more or {}
    kind = sent.pop("Content-Type", "application/octet-stream")
    got = browser.generic(wanted.method or "", wanted.path_url, body, content_type=kind, headers=sent)
    answer = requests.Response()
    content = body_of(got)
    answer.status_code, answer._content, answer.request = got.status_code, content, wanted
    answer.headers.update(got.headers)
    answer.raw = urllib3.HTTPResponse(io.BytesIO(content), dict(got.headers), got.status_code, version=11)
    return answer


@pytest.mark.usefixtures("unlimited")
@pytest.mark.parametrize("label", LABELS)
def test_every_answer_is_documented(world: World, label: str) -> None:  # noqa: F811
    """Half of the requests name our organization, the others any."""
    _ask(world, world.cast.client("owner"), label)


@pytest.mark.usefixtures("unlimited")
@pytest.mark.parametrize("scope", TokenScope)
@pytest.mark.parametrize("label", LABELS)
def test_every_answer_to_a_management_token_is_documented(
    world: World,  # noqa: F811
    label: str,
    scope: TokenScope,
) -> None:
    token = made_token(world.cast, "owner", scope=scope)
    _ask(world, Browser(), label, bearer_of(token))


def _ask(world: World, browser: Browser, label: str, more: Mapping[str, str] | None = None) -> None:  # noqa: F811
    """`more`: headers of each request."""
    operation = operations()[label]
    applied = checks()[:-1] if operation.path.endswith(REPORT_OTHERS) else checks()

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=EXAMPLES < 10,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def ask(case: Any, real: bool) -> None:
        if real:
            known = {name: value for name, value in world.ids.items() if name in case.path_parameters}
            case.path_parameters = {**case.path_parameters, **known}
            if operation.query and "org_id" in {each.name for each in operation.query}:
                case.query = {**(case.query or {}), "org_id": world.ids["org_id"]}
        point = transaction.savepoint()
        try:
            case.validate_response(answer_to(browser, case, more), checks=applied)
        finally:
            transaction.savepoint_rollback(point)

    ask(real=True)
    ask(real=False)
