"""Trust in identity providers over the API and on its pages: owners set it, and it ends what it gave."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client as Browser
from pytest_django.fixtures import Settings

from audit.models import AdminAuditEntry
from oauth_ext import issuer_keys
from oauth_ext.models import Client, TrustedIssuer
from tests.api.oauth_ext.conftest import make_service
from tests.api.oauth_ext.flow import make_flow
from tests.api.oauth_ext.test_assertion_grant import World, allow
from tests.api.oauth_ext.test_token_exchange import exchange
from tests.factories.api import Api
from tests.factories.cast import Cast
from tests.factories.races import at_once
from tests.fakes.assertion_provider import AssertionProvider, public_jwk, running_provider

ISSUERS = "/orgs/{org}/trusted-issuers"


@pytest.fixture
def provider() -> Iterator[AssertionProvider]:
    """Asked for its keys when it is added."""
    issuer_keys.forget()
    with running_provider() as provider:
        yield provider
    issuer_keys.forget()


@pytest.fixture
def api(cast: Cast) -> Api:
    """See Api."""
    return Api(cast)


def test_an_owner_adds_lists_and_removes_it(api: Api, provider: AssertionProvider) -> None:
    made = api.send("owner", "POST", ISSUERS, {"issuer": provider.url})
    assert made.status_code == 201, made.content
    body = json.loads(made.content)
    assert body["algorithms"] == ["RS256", "ES256"]
    assert (body["jwks_url"], body["tenant"], body["client_ids"], body["last_used_at"]) == ("", "", [], None)
    assert api.get("owner", ISSUERS) == [body]
    assert api.refused("owner", "POST", ISSUERS, {"issuer": provider.url}) == (409, "conflict")
    # Another organization neither sees nor ends it.
    assert api.get("other_owner", "/orgs/{other}/trusted-issuers") == []
    assert api.send("other_owner", "DELETE", f"/orgs/{{other}}/trusted-issuers/{body['id']}").status_code == 404
    assert api.send("admin", "DELETE", f"{ISSUERS}/{body['id']}").status_code == 403
    assert api.send("owner", "DELETE", f"{ISSUERS}/{body['id']}").status_code == 204
    assert not TrustedIssuer.objects.exists()
    assert api.events() == ["trusted_issuer.added", "trusted_issuer.removed"]
    added = AdminAuditEntry.objects.get(event_type="trusted_issuer.added")
    assert (added.target_label, added.metadata["algorithms"]) == (provider.url, ["RS256", "ES256"])


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"issuer": "acme"}, "issuer"),
        ({"issuer": "ftp://acme.example"}, "issuer"),
        ({"issuer": "http://testserver"}, "issuer"),
        ({"issuer": "https://user@acme.example"}, "issuer"),
        ({"issuer": "https://acme.example/#a"}, "issuer"),
        ({"issuer": "https://acme.example/" + "a" * 300}, "issuer"),
        ({"jwks_url": "nowhere"}, "jwks_url"),
        ({"algorithms": ["HS256"]}, "algorithms"),
        ({"algorithms": ["none"]}, "algorithms"),
        ({"algorithms": []}, "algorithms"),
        ({"algorithms": ["RS256"]}, "issuer"),  # the provider has no such key
        ({"client_ids": ["svc_unknown"]}, "client_ids"),
    ],
)
def test_bad_input(api: Api, provider: AssertionProvider, body: dict[str, Any], field: str) -> None:
    assert api.faults("owner", "POST", ISSUERS, {"issuer": provider.url, **body}) == {field}
    assert not TrustedIssuer.objects.exists()


def test_agents_of_another_organization_are_refused(api: Api, provider: AssertionProvider) -> None:
    theirs = make_service(api.cast, organization=api.cast.other_org)
    body = {"issuer": provider.url, "client_ids": [theirs.client.client_id]}
    assert api.faults("owner", "POST", ISSUERS, body) == {"client_ids"}


def test_a_provider_that_is_no_provider(api: Api, provider: AssertionProvider, settings: Settings) -> None:
    provider.answers["/.well-known/openid-configuration"] = (200, b'{"issuer":"https://else.example"}')
    assert api.faults("owner", "POST", ISSUERS, {"issuer": provider.url}) == {"issuer"}
    assert api.faults("owner", "POST", ISSUERS, {"issuer": provider.url, "jwks_url": f"{provider.url}/no"}) == {
        "jwks_url"
    }
    settings.ALLOW_PRIVATE_ENDPOINTS = False
    assert api.faults("owner", "POST", ISSUERS, {"issuer": provider.url}) == {"issuer"}
    assert "/no" in provider.asked


def test_keys_at_an_address_of_their_own(api: Api, provider: AssertionProvider) -> None:
    jwk = public_jwk(provider.keys["first"], "first", "ES256")
    provider.answers["/else"] = (200, json.dumps({"keys": [jwk]}).encode())
    body = {"issuer": "https://issuer.example", "jwks_url": f"{provider.url}/else"}
    assert api.send("owner", "POST", ISSUERS, body).status_code == 201
    assert provider.asked == ["/else"]


def test_an_organization_trusts_a_few(api: Api, provider: AssertionProvider, settings: Settings) -> None:
    settings.TRUSTED_ISSUERS_PER_ORGANIZATION = 1
    assert api.send("owner", "POST", ISSUERS, {"issuer": provider.url}).status_code == 201
    body = {"issuer": "https://issuer.example", "jwks_url": f"{provider.url}/keys"}
    assert api.refused("owner", "POST", ISSUERS, body) == (409, "limit_reached")


def test_an_owner_lets_an_agent_act_and_ends_it(api: Api) -> None:
    service = make_service(api.cast)
    path = f"/orgs/{{org}}/service-clients/{service.client.client_id}/acting"
    assert api.refused("admin", "PUT", path, {"acts_for_people": True}) == (403, "forbidden")
    assert api.faults("owner", "PUT", path, {"acts_for_people": "yes"}) == {"acts_for_people"}
    for wanted in (True, True, False):
        answer = api.send("owner", "PUT", path, {"acts_for_people": wanted})
        assert json.loads(answer.content) == {"acts_for_people": wanted}
    row = AdminAuditEntry.objects.filter(event_type="service_client.updated").order_by("timestamp", "id")
    assert [each.metadata["acts_for_people"] for each in row] == [True, False]


def test_two_owners_at_once_end_it_once(committed_cast: Cast, provider: AssertionProvider) -> None:
    world = World(committed_cast, provider)
    world.token()
    api = Api(committed_cast)
    path = f"{ISSUERS}/{world.trust.pk}"
    answers = at_once(*[lambda: api.send("owner", "DELETE", path)] * 5)
    assert sorted(answer.status_code for answer in answers) == [204, 404, 404, 404, 404]


# --- pages ------------------------------------------------------------------------------------------------------------


def page(cast: Cast, who: str = "owner") -> tuple[Browser, str]:
    return cast.client(who), f"/orgs/{cast.org.id}/settings/identity-providers"


def test_the_page_adds_and_removes(cast: Cast, provider: AssertionProvider) -> None:
    service = make_service(cast)
    allow(cast, service)
    browser, path = page(cast)
    assert "http://testserver/v1/mcp" in browser.get(path).content.decode()
    form = {"issuer": provider.url, "algorithms": ["ES256"], "client_ids": [service.client.client_id]}
    answer = browser.post(path, form, follow=True)
    assert answer.status_code == 200
    text = answer.content.decode()
    assert f"{provider.url} is trusted." in text
    assert "build bot" in text
    row = TrustedIssuer.objects.get()
    assert (row.algorithms, row.client_ids) == (["ES256"], [service.client.client_id])
    asked = browser.get(f"{path}/{row.pk}/remove").content.decode()
    assert f"Stop trusting {provider.url}?" in asked
    assert "The tokens for 0 people end immediately" in asked
    assert "no longer trusted" in browser.post(f"{path}/{row.pk}/remove", follow=True).content.decode()
    assert not TrustedIssuer.objects.exists()


def test_the_page_shows_what_is_wrong_and_keeps_the_input(cast: Cast, provider: AssertionProvider) -> None:
    provider.answers["/keys"] = (500, b"")
    browser, path = page(cast)
    answer = browser.post(path, {"issuer": provider.url, "algorithms": ["ES256"]})
    assert answer.status_code == 422
    text = answer.content.decode()
    assert "The issuer responded with status 500." in text
    assert provider.url in text


@pytest.mark.parametrize("who", ["admin", "member"])
def test_the_page_is_for_owners(cast: Cast, who: str) -> None:
    browser, path = page(cast, who)
    assert browser.get(path).status_code == 403
    assert browser.post(path, {"issuer": "https://idp.example"}).status_code == 403


def test_an_agents_settings_let_it_act(cast: Cast) -> None:
    service = make_service(cast)
    path = f"/orgs/{cast.org.id}/agents/{service.client.client_id}/settings"
    assert cast.client("admin").post(path, {"action": "acting", "acting": "yes"}).status_code == 403
    shown = cast.client("owner").post(path, {"action": "acting", "acting": "yes"}, follow=True).content.decode()
    assert "build bot may now act for people." in shown
    assert Client.objects.get(pk=service.client.pk).acts_for_people
    exchange(service, make_flow(cast).tokens()["access_token"])
    cast.client("owner").post(path, {"action": "acting", "acting": "no"})
    assert not Client.objects.get(pk=service.client.pk).acts_for_people


def test_a_person_sees_and_ends_what_acts_for_them(cast: Cast, provider: AssertionProvider) -> None:
    world = World(cast, provider)
    world.token()
    browser, path = cast.client("member"), f"/orgs/{cast.org.id}/apps"
    shown = browser.get(path).content.decode()
    assert "build bot" in shown
    assert f"an assertion of {provider.url}" in shown
    family = world.trust.token_families.get()
    assert "disconnected" in browser.post(path, {"app": str(family.pk)}, follow=True).content.decode()
    assert not world.trust.token_families.exists()
