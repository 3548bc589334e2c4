"""Error answers lead to the entry of their code, and answers that are no error lead nowhere."""

from __future__ import annotations

import json
import re

import pytest
from django.http import HttpResponse
from django.test import Client as Browser

from gateway.middleware.refusal import Message, Refusal, send_refusal
from gateway.site.help.library import library
from tests.api.pages.conftest import text
from tests.factories.api import Api

HELP = re.compile(r'<http://testserver/docs/errors#([\w-]+)>; rel="help"')


def code_of(answer: HttpResponse) -> str:
    """The code whose entry the answer names, which exists."""
    found = HELP.fullmatch(answer["Link"])
    assert found, answer["Link"]
    document = library().find("errors")
    assert document is not None
    assert found[1] in {heading.id for heading in document.content.headings}
    return found[1]


def test_refusals_of_the_api(api: Api) -> None:
    for who, method, path, body in (
        ("nobody", "GET", "/orgs", None),
        ("member", "PATCH", "/orgs/{org}", {"name": "X"}),
        ("other_owner", "GET", "/orgs/{org}", None),
        ("owner", "PATCH", "/orgs/{org}", {"name": 7}),
        ("owner", "PUT", "/orgs/{org}", {}),
        ("owner", "GET", "/nowhere", None),
    ):
        answer = api.send(who, method, path, body)
        assert answer.status_code >= 400
        assert code_of(answer) == json.loads(answer.content)["error"]
    problem = api.send("member", "PATCH", "/orgs/{org}", {"name": "X"}, headers={"Accept": "application/problem+json"})
    assert code_of(problem) == "forbidden"


def test_the_body_of_a_refusal_stays_as_documented(api: Api) -> None:
    answer = api.send("nobody", "GET", "/orgs")
    assert json.loads(answer.content).keys() == {"error", "message", "requestId"}


def test_a_success_names_no_entry(api: Api) -> None:
    assert "Link" not in api.send("owner", "GET", "/orgs/{org}")


@pytest.mark.django_db
def test_refusals_of_oauth() -> None:
    form = "application/x-www-form-urlencoded"
    wrong = Browser().post("/oauth/token", "grant_type=password", content_type=form)
    assert code_of(wrong) == json.loads(wrong.content)["error"] == "unsupported_grant_type"
    assert "Link" in wrong["Access-Control-Expose-Headers"]
    assert code_of(Browser().get("/oauth/token")) == "invalid_request"


@pytest.mark.django_db
def test_an_error_page_leads_to_the_entry() -> None:
    page = text(Browser().get("/nowhere"))
    assert '<a href="/docs/errors#not_found">What this error means</a>' in page


async def test_a_refusal_before_django() -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    await send_refusal({"headers": []}, send, Refusal.too_large(10))
    assert dict(sent[0]["headers"])[b"link"] == b'<http://testserver/docs/errors#body_too_large>; rel="help"'
