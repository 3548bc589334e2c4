"""Requests that nobody thought of, generated from the OpenAPI document: no 5xx, nothing undocumented.

API_EXAMPLES requests per operation and world, 4 unless the environment says otherwise.
"""

from __future__ import annotations

import io
import os
from typing import Any

import pytest
import requests
import schemathesis
import urllib3
from django.db import transaction
from django.test import Client as Browser
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from gateway.coordination.rules import Rule
from gateway.coordination.store import Admission
from gateway.site.api_docs import document
from gateway.web import rate
from tests.contracts.test_routes import World, world  # noqa: F401

EXAMPLES = int(os.environ.get("API_EXAMPLES", "4"))
CHECKS: list[Any] = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
SCHEMA = schemathesis.openapi.from_dict(dict(document()))
OPERATIONS = [result.ok() for result in SCHEMA.get_all_operations()]


@pytest.fixture
def unlimited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits have tests of their own; here they would hide what lies behind them."""

    def count(request: object, rule: Rule) -> Admission:
        return Admission(rule, True, rule.limit - 1, 0, None)

    monkeypatch.setattr(rate, "count", count)


def answer_to(browser: Browser, case: Any) -> requests.Response:
    """Sent through Django's test client, which shares the test's transaction."""
    wanted = requests.Request(**case.as_transport_kwargs(base_url="http://testserver")).prepare()
    browser.raise_request_exception = False
    body = wanted.body.encode() if isinstance(wanted.body, str) else wanted.body or b""
    headers = {
        name: value for name, value in wanted.headers.items() if name.lower() not in {"cookie", "content-length"}
    }
    sent = {name: value.decode() if isinstance(value, bytes) else value for name, value in headers.items()}
    kind = sent.pop("Content-Type", "application/octet-stream")
    got = browser.generic(wanted.method or "", wanted.path_url, body, content_type=kind, headers=sent)
    answer = requests.Response()
    answer.status_code, answer._content, answer.request = got.status_code, got.content, wanted
    answer.headers.update(got.headers)
    answer.raw = urllib3.HTTPResponse(io.BytesIO(got.content), dict(got.headers), got.status_code, version=11)
    return answer


@pytest.mark.usefixtures("unlimited")
@pytest.mark.parametrize("real", [True, False], ids=["in our organization", "anywhere"])
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.label)
def test_every_answer_is_documented(world: World, operation: Any, real: bool) -> None:  # noqa: F811
    browser = world.cast.client("owner")
    # The one route that reports somebody else's failure as its own answer: the vendor of this world is away.
    checks = [check for check in CHECKS if check is not not_a_server_error or not operation.path.endswith("/discover")]

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=EXAMPLES < 10,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def ask(case: Any) -> None:
        if real:
            known = {name: value for name, value in world.ids.items() if name in case.path_parameters}
            case.path_parameters = {**case.path_parameters, **known}
        point = transaction.savepoint()
        try:
            case.validate_response(answer_to(browser, case), checks=checks)
        finally:
            transaction.savepoint_rollback(point)

    ask()
