"""POST /oauth/token."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from unittest.mock import patch

import jwt
import pytest
from django.db import IntegrityError, InterfaceError, OperationalError, transaction
from django.test import Client as Browser

from gateway.coordination.store import CoordinationUnavailable
from gateway.lib import clock, secrets
from oauth_ext import server
from oauth_ext.jwt.keys import SigningKeysUnavailable
from oauth_ext.models import AccessToken, Client
from oauth_ext.validator import Validator
from tests.api.oauth_ext.conftest import Service, basic, make_service, post
from tests.factories.cast import Cast

UNIFIED = "http://testserver/v1/mcp"


def refusal(answer: object) -> tuple[int, str]:
    """Status and error, after checking what every refusal has."""
    body = answer.json()  # type: ignore[attr-defined]
    assert set(body) == {"error", "error_description"}
    assert body["error_description"]
    assert answer["Content-Type"] == "application/json"  # type: ignore[index]
    assert answer["Cache-Control"] == "no-store"  # type: ignore[index]
    assert answer["Access-Control-Allow-Origin"] == "*"  # type: ignore[index]
    assert answer["X-Request-Id"]  # type: ignore[index]
    return answer.status_code, body["error"]  # type: ignore[attr-defined]


def read(token: str) -> dict[str, object]:
    """The claims, verified with PyJWT against the served JWKS and nothing else."""
    jwks = jwt.PyJWKSet.from_dict(Browser().get("/.well-known/jwks.json").json())
    kid = jwt.get_unverified_header(token)["kid"]
    return jwt.decode(token, jwks[kid], algorithms=["ES256"], audience=UNIFIED, issuer="http://testserver")


def test_credentials_in_the_form(service: Service) -> None:
    answer = post(service.fields())
    assert answer.status_code == 200
    body = answer.json()
    assert set(body) == {"access_token", "token_type", "expires_in", "scope"}
    assert (body["token_type"], body["expires_in"], body["scope"]) == ("Bearer", 3600, "mcp:all")
    assert answer["Cache-Control"] == "no-store"
    assert answer["Pragma"] == "no-cache"
    assert answer["Access-Control-Allow-Origin"] == "*"
    assert "Access-Control-Allow-Credentials" not in answer
    claims = read(body["access_token"])
    assert claims["sub"] == f"svc:{service.client.organization_id}:{service.client.client_id}"
    assert claims["org_id"] == str(service.client.organization_id)
    assert (claims["client_id"], claims["aud"]) == (service.client.client_id, UNIFIED)


def test_the_stored_token(service: Service) -> None:
    token = service.token(scope="mcp")
    row = AccessToken.objects.get()
    assert row.token == ""
    assert row.token_checksum == secrets.sha256(token).hex()
    assert (row.organization_id, row.application_id, row.user_id) == (
        service.client.organization_id,
        service.client.pk,
        None,
    )
    assert (row.scope, row.resource) == ("mcp", [UNIFIED])
    service.client.refresh_from_db()
    assert service.client.last_used_at is not None


@pytest.mark.parametrize("encode", [False, True])
def test_http_basic(service: Service, encode: bool) -> None:
    client_id, secret = service.client.client_id, service.secret
    if encode:
        client_id, secret = ("".join(f"%{ord(letter):02x}" for letter in text) for text in (client_id, secret))
    header = basic(client_id, secret)
    assert post({"grant_type": "client_credentials"}, Authorization=header).status_code == 200
    also_named = {"grant_type": "client_credentials", "client_id": service.client.client_id, "client_secret": ""}
    assert post(also_named, Authorization=header).status_code == 200


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        ("mcp:all", "mcp:all"),
        ("mcp", "mcp"),
        ("mcp:acme", "mcp:acme"),
        ("mcp:acme mcp:acme mcp", "mcp:acme mcp"),
        ("", "mcp:all"),
    ],
)
def test_scopes(service: Service, vendor: str, asked: str, given: str) -> None:
    body = post(service.fields(scope=asked)).json()
    assert body["scope"] == given
    assert read(body["access_token"])["scope"] == given


@pytest.mark.parametrize("asked", ["admin", "mcp:nope", "mcp:acme mcp:nope", "mcp:acme openid", " ", "mcp:ACME"])
def test_unknown_scopes(service: Service, vendor: str, asked: str) -> None:
    assert refusal(post(service.fields(scope=asked))) == (400, "invalid_scope")
    assert not AccessToken.objects.exists()


@pytest.mark.parametrize(
    ("asked", "audience"),
    [
        ("http://testserver", UNIFIED),
        ("HTTP://TESTSERVER/v1/mcp/", UNIFIED),
        ("http://testserver/v1/acme/mcp", "http://testserver/v1/acme/mcp"),
    ],
)
def test_resources(service: Service, vendor: str, asked: str, audience: str) -> None:
    token = service.token(resource=asked)
    assert jwt.decode(token, options={"verify_signature": False})["aud"] == audience
    assert AccessToken.objects.get().resource == [audience]


def test_several_resources(service: Service, vendor: str) -> None:
    form = f"grant_type=client_credentials&resource={UNIFIED}&resource=http://testserver/v1/acme/mcp&resource={UNIFIED}"
    body = post(form, Authorization=service.basic).json()
    audiences = jwt.decode(body["access_token"], options={"verify_signature": False})["aud"]
    assert audiences == [UNIFIED, "http://testserver/v1/acme/mcp"]


@pytest.mark.parametrize("asked", ["https://else.test/v1/mcp", "http://testserver/v1/nope/mcp", "mcp"])
def test_foreign_resources(service: Service, vendor: str, asked: str) -> None:
    assert refusal(post(service.fields(resource=asked))) == (400, "invalid_target")
    assert not AccessToken.objects.exists()


def test_who_is_not_let_in(service: Service, public_client: Client) -> None:
    client_id = service.client.client_id
    grant = {"grant_type": "client_credentials"}
    for fields in (
        grant,
        {**grant, "client_id": client_id},
        {**grant, "client_secret": service.secret},
        {**grant, "client_id": client_id, "client_secret": "wrong"},
        {**grant, "client_id": client_id, "client_secret": service.client.client_secret},
        {**grant, "client_id": "svc_unknown", "client_secret": service.secret},
        {**grant, "client_id": "https://client.example/metadata", "client_secret": "x"},
    ):
        answer = post(fields)
        assert refusal(answer) == (401, "invalid_client"), fields
        assert "WWW-Authenticate" not in answer
    for header in (basic(client_id, "wrong"), basic("svc_unknown", "x"), basic(client_id, ""), "Basic !!!", "Basic"):
        answer = post(grant, Authorization=header)
        assert refusal(answer) == (401, "invalid_client"), header
        assert answer["WWW-Authenticate"] == 'Basic realm="oauth"'
    for fields in ({**grant, "client_id": "mcpc_public"}, {**grant, "client_id": "mcpc_public", "client_secret": "x"}):
        assert refusal(post(fields)) == (400, "unauthorized_client")
    assert not AccessToken.objects.exists()


def test_a_confidential_client_without_a_stored_secret_is_not_let_in(service: Service) -> None:
    Client.objects.filter(pk=service.client.pk).update(client_secret="")
    for fields in (service.fields(client_secret=""), service.fields()):
        assert refusal(post(fields)) == (401, "invalid_client")


def test_expired_and_deleted_clients(cast: Cast, service: Service) -> None:
    Client.objects.filter(pk=service.client.pk).update(expires_at=clock.now() - timedelta(seconds=1))
    assert refusal(post(service.fields())) == (401, "invalid_client")
    other = make_service(cast)
    assert post(other.fields()).status_code == 200
    other.client.delete()
    assert refusal(post(other.fields())) == (401, "invalid_client")


@pytest.mark.parametrize(
    "form",
    [
        "",
        "client_id=a",
        "grant_type=",
        "grant_type=client_credentials&grant_type=client_credentials",
        "grant_type=client_credentials&scope=mcp&scope=mcp:all",
        "grant_type=client_credentials&x=1&x=2",
        "grant_type=client_credentials&scope=%00",
        "grant_type=client_credentials&client_id=%F0%9F%98%80",
    ],
)
def test_malformed_forms(service: Service, form: str) -> None:
    assert refusal(post(form, Authorization=service.basic)) == (400, "invalid_request")


def test_two_ways_to_authenticate_at_once(service: Service) -> None:
    assert refusal(post(service.fields(), Authorization=service.basic)) == (400, "invalid_request")
    another = {"grant_type": "client_credentials", "client_id": "svc_other"}
    assert refusal(post(another, Authorization=service.basic)) == (400, "invalid_request")


@pytest.mark.parametrize("content_type", ["application/json", "multipart/form-data; boundary=x", "text/plain"])
def test_other_bodies(service: Service, content_type: str) -> None:
    answer = post('{"grant_type": "client_credentials"}', Authorization=service.basic, content_type=content_type)
    assert refusal(answer) == (400, "invalid_request")


def test_parameters_in_the_address(service: Service) -> None:
    address = f"/oauth/token?client_id={service.client.client_id}&client_secret={service.secret}"
    assert refusal(post({"grant_type": "client_credentials"}, path=address)) == (400, "invalid_request")


@pytest.mark.parametrize(
    "grant_type",
    ["password", "implicit", "urn:ietf:params:oauth:grant-type:saml2-bearer", "AUTHORIZATION_CODE", "x"],
)
def test_grants_that_are_off(service: Service, public_client: Client, grant_type: str) -> None:
    more = {"code": "c", "refresh_token": "r", "device_code": "d", "username": "u", "password": "p"}
    assert refusal(post(service.fields(grant_type=grant_type, **more))) == (400, "unsupported_grant_type")
    as_public = {"grant_type": grant_type, "client_id": public_client.client_id, **more}
    assert refusal(post(as_public)) == (400, "unsupported_grant_type")


def test_bodies_that_are_too_large(service: Service) -> None:
    padding = "&padding=" + "x" * (16 * 1024)
    assert refusal(post(f"grant_type=client_credentials{padding}", Authorization=service.basic)) == (
        413,
        "invalid_request",
    )
    full = "grant_type=client_credentials&padding="
    full += "x" * (16 * 1024 - len(full))
    assert post(full, Authorization=service.basic).status_code == 200


def test_a_length_that_lies_is_not_believed(service: Service) -> None:
    browser = Browser(headers={"Authorization": service.basic})
    body = b"grant_type=client_credentials&padding=" + b"x" * (16 * 1024)
    answer = browser.generic("POST", "/oauth/token", body, "application/x-www-form-urlencoded", CONTENT_LENGTH="junk")
    assert refusal(answer)[0] in {400, 413}
    assert not AccessToken.objects.exists()


def test_an_encoded_body_is_refused(service: Service) -> None:
    answer = post({"grant_type": "client_credentials"}, Authorization=service.basic, **{"Content-Encoding": "gzip"})
    assert refusal(answer) == (415, "invalid_request")


@pytest.mark.parametrize("fault", [OperationalError, InterfaceError, CoordinationUnavailable, SigningKeysUnavailable])
def test_what_is_away_is_no_server_error(
    service: Service, monkeypatch: pytest.MonkeyPatch, fault: type[Exception], caplog: pytest.LogCaptureFixture
) -> None:
    def fails() -> None:
        raise fault(service.secret)

    monkeypatch.setattr(server, "token_endpoint", fails)
    answer = post(service.fields())
    assert refusal(answer) == (503, "temporarily_unavailable")
    assert answer["Retry-After"] == "5"
    assert service.secret not in caplog.text


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "PATCH"])
def test_other_methods(db: None, method: str) -> None:
    answer = Browser().generic(method, "/oauth/token")
    assert answer.status_code == 405
    assert answer["Allow"] == "POST, OPTIONS"
    if method != "HEAD":
        assert refusal(answer) == (405, "invalid_request")


def test_preflight(db: None) -> None:
    answer = Browser().options("/oauth/token", headers={"Origin": "https://app.example"})
    assert answer.status_code == 204
    assert answer["Access-Control-Allow-Origin"] == "*"
    assert answer["Access-Control-Allow-Methods"] == "POST, OPTIONS"
    assert "Authorization" in answer["Access-Control-Allow-Headers"]
    assert "Access-Control-Allow-Credentials" not in answer


def test_a_page_of_another_origin_may_ask(service: Service) -> None:
    foreign = {"Origin": "https://app.example", "Sec-Fetch-Site": "cross-site"}
    answer = post(service.fields(), **foreign)
    assert answer.status_code == 200
    assert not answer.cookies


def test_a_field_named_like_an_attribute_changes_nothing(cast: Cast, service: Service) -> None:
    stranger = str(cast.user("stranger").pk)
    attack = {"user": stranger, "client": "x", "organization_id": str(cast.other_org.pk), "scopes": "x", "claims": "{"}
    claims = read(service.token(**attack, expires_in="999999"))
    assert claims["org_id"] == str(cast.org.pk)
    assert claims["sub"] == service.client.subject
    assert int(str(claims["exp"])) - int(str(claims["iat"])) == 3600


@pytest.mark.django_db(transaction=True)
def test_a_client_that_is_deleted_meanwhile_is_unknown(committed_cast: Cast) -> None:
    service = make_service(committed_cast)
    check = Validator.validate_scopes

    def and_lose_the_client(self: Validator, *args: object, **kwargs: object) -> bool:
        Client.objects.filter(pk=service.client.pk).delete()
        return check(self, *args, **kwargs)  # type: ignore[arg-type]

    with patch.object(Validator, "validate_scopes", and_lose_the_client):
        assert refusal(post(service.fields())) == (401, "invalid_client")
    assert not AccessToken.objects.exists()


def test_a_token_that_cannot_be_stored_leaves_the_transaction_usable(cast: Cast, service: Service) -> None:
    """The library's own savepoint is rolled back, so the look for the client after it is answered."""
    request = SimpleNamespace(client=service.client, user=None, organization_id=cast.org.id, resource=[], headers={})
    request.client_id, request.client_secret = service.client.client_id, service.secret

    def store(name: str) -> None:
        Validator().save_bearer_token({"access_token": name, "expires_in": 60, "scope": "mcp:all"}, request)

    with transaction.atomic():
        store("first")
        with pytest.raises(IntegrityError):
            store("first")
        assert AccessToken.objects.filter(application=service.client).count() == 1
        store("second")
    assert AccessToken.objects.filter(application=service.client).count() == 2


@pytest.mark.parametrize("path", ["/oauth/token", "/oauth/revoke", "/oauth/register", "/oauth/device_authorization"])
def test_a_foreign_host_is_refused_in_the_form_of_the_endpoint(db: None, path: str) -> None:
    for host in ("evil.example", "a/#@b"):
        assert refusal(post({}, path, Host=host)) == (400, "invalid_request")
