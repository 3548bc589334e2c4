"""Discovery of a vendor's authorization server, and metadata that must not be followed.

Spec: contract §8 · RFC 8414, 8707, 9207, 9728
"""

from __future__ import annotations

import base64
import json
from typing import Any

import msgspec
import pytest
from django.conf import LazySettings

from credentials.vendor_asking import ask_vendor_server, catalog_client, check_endpoint
from credentials.vendor_oauth import answers
from credentials.vendor_oauth.answers import Refused, Tokens, VendorOAuthFault
from credentials.vendor_oauth.discovery import check_not_of_others, discover
from credentials.vendor_oauth.requests import account_of, register
from gateway.catalog.vendor import CredentialField, HeaderTemplate, OAuthSettings, Vendor
from gateway.catalog.vendor_rules import catalog_faults
from gateway.lib import guarded_client
from gateway.lib.guarded_client import Response

MCP = "https://vendor.example/v1/mcp"
ISSUER = "https://auth.example/tenant"
PRM = {"resource": MCP, "authorization_servers": [ISSUER], "scopes_supported": ["read"]}
SERVER = {
    "issuer": ISSUER,
    "authorization_endpoint": "https://auth.example/authorize",
    "token_endpoint": "https://auth.example/token",
    "registration_endpoint": "https://auth.example/register",
    "code_challenge_methods_supported": ["S256"],
}
TOLD = "https://vendor.example/.well-known/told"
AT_PATH = "https://vendor.example/.well-known/oauth-protected-resource/v1/mcp"
AT_ROOT = "https://vendor.example/.well-known/oauth-protected-resource"
OAUTH = "https://auth.example/.well-known/oauth-authorization-server/tenant"
OIDC = "https://auth.example/.well-known/openid-configuration/tenant"
OIDC_APPENDED = "https://auth.example/tenant/.well-known/openid-configuration"


class Web:
    """Answers by address; all others are 404. `asked` has the addresses in order."""

    def __init__(self, pages: dict[str, Any], challenge: str = "") -> None:
        self.pages, self.challenge, self.asked = pages, challenge, list[str]()
        # Of the vendor itself, in order; all others are the challenge.
        self.opened: list[Response | VendorOAuthFault] = []
        self.sent: list[dict[str, Any]] = []

    def __call__(self, method: str, url: str, **request: Any) -> Response:
        self.asked.append(url)
        if url == MCP:
            self.sent.append(request)
            if self.opened:
                answer = self.opened.pop(0)
                if isinstance(answer, VendorOAuthFault):
                    raise answer
                return answer
            return Response(401, {"WWW-Authenticate": self.challenge}, b"")
        if url not in self.pages:
            return Response(404, {}, b"")
        page = self.pages[url]
        return page if isinstance(page, Response) else Response(200, {}, json.dumps(page).encode())


def found(web: Web, **more: Any) -> Any:
    return discover(MCP, ask=web, check=lambda url: None, **more)


@pytest.mark.parametrize("where", [AT_PATH, AT_ROOT, TOLD])
@pytest.mark.parametrize("server", [OAUTH, OIDC, OIDC_APPENDED])
def test_metadata_is_found_in_every_form(where: str, server: str) -> None:
    told = f'Bearer error="invalid_token", resource_metadata="{TOLD}"' if where == TOLD else "Bearer"
    result = found(Web({where: PRM, server: SERVER}, told))
    assert result.server.issuer == ISSUER
    assert result.resource == MCP
    assert result.scopes == ("read",)


def test_scopes_of_catalog_then_challenge_then_metadata() -> None:
    web = Web({AT_PATH: PRM, OAUTH: SERVER}, 'Bearer scope="files:read files:write"')
    assert found(web).scopes == ("files:read", "files:write")
    assert found(web, scopes=("one",)).scopes == ("one",)
    offline = {**SERVER, "scopes_supported": ["read", "offline_access"]}
    assert found(Web({AT_PATH: PRM, OAUTH: offline})).scopes == ("read", "offline_access")
    assert found(Web({AT_PATH: {**PRM, "scopes_supported": None}, OAUTH: SERVER})).scopes == ()


def test_a_vendor_that_opens_sessions_for_anybody_is_asked_for_its_tools() -> None:
    web = Web({TOLD: PRM, OAUTH: SERVER}, f'Bearer scope="tools", resource_metadata="{TOLD}"')
    web.opened = [Response(200, {"Mcp-Session-Id": "s-1"}, b"{}")]
    assert found(web).scopes == ("tools",)
    assert [each["headers"].get("Mcp-Session-Id") for each in web.sent] == [None, "s-1"]
    assert b"tools/list" in web.sent[1]["body"]


@pytest.mark.parametrize("listed", [Response(200, {}, b"{}"), VendorOAuthFault("too large")])
def test_a_list_that_anybody_may_read_is_no_hindrance(listed: Response | VendorOAuthFault) -> None:
    web = Web({AT_PATH: PRM, OAUTH: SERVER})
    web.opened = [Response(200, {"Mcp-Session-Id": "with spaces"}, b"{}"), listed]
    assert found(web).scopes == ("read",)
    assert "Mcp-Session-Id" not in web.sent[1]["headers"]


def test_a_vendor_of_the_first_revision_is_its_own_issuer() -> None:
    own = {**SERVER, "issuer": "https://vendor.example"}
    web = Web({"https://vendor.example/.well-known/oauth-authorization-server": own})
    assert (found(web).server.issuer, found(web).resource) == ("https://vendor.example", MCP)
    with_query = discover(f"{MCP}?login", ask=web, check=lambda url: None)
    assert with_query.resource == MCP


@pytest.mark.parametrize(
    ("pages", "more"),
    [
        ({AT_PATH: {**PRM, "resource": "https://other.example/v1/mcp"}, OAUTH: SERVER}, {}),
        ({AT_PATH: {**PRM, "resource": "https://vendor.example/v2"}, OAUTH: SERVER}, {}),
        ({AT_PATH: {**PRM, "resource": "https://vendor.example/v1/mc"}, OAUTH: SERVER}, {}),
        ({AT_PATH: {**PRM, "authorization_servers": []}, OAUTH: SERVER}, {}),
        ({AT_PATH: PRM, OAUTH: {**SERVER, "issuer": f"{ISSUER}/"}}, {}),
        ({AT_PATH: PRM, OAUTH: {**SERVER, "issuer": "https://evil.example"}}, {}),
        ({AT_PATH: PRM, OAUTH: {**SERVER, "code_challenge_methods_supported": ["plain"]}}, {}),
        ({AT_PATH: PRM, OAUTH: {**SERVER, "token_endpoint": 7}}, {}),
        ({AT_PATH: PRM, OAUTH: SERVER}, {"issuer": "https://pinned.example"}),
        ({AT_PATH: PRM}, {}),
        ({AT_PATH: Response(200, {}, b"[]"), OAUTH: SERVER}, {}),
        ({AT_PATH: Response(302, {"Location": OAUTH}, b""), OAUTH: SERVER}, {}),
        ({AT_PATH: PRM, OAUTH: Response(307, {"Location": OIDC}, b""), OIDC: SERVER}, {}),
        ({AT_PATH: PRM, OAUTH: Response(500, {}, b""), OIDC: SERVER}, {}),
    ],
)
def test_metadata_that_contradicts_is_refused(pages: dict[str, Any], more: dict[str, Any]) -> None:
    with pytest.raises(VendorOAuthFault) as refusal:
        found(Web(pages), **more)
    assert "example" not in refusal.value.reason


BAD_ADDRESSES = [
    "http://auth.example/token",
    "https://127.0.0.1/token",
    "https://169.254.169.254/latest",
    "https://10.0.0.1/token",
    "https://[::1]/token",
    "https://0x7f.1/token",
    "https://user@auth.example/token",
    "ftp://auth.example/token",
    "javascript:alert(1)",
    "https://auth.example:99999/token",
    "",
]


@pytest.mark.parametrize("address", BAD_ADDRESSES)
def test_addresses_that_nobody_is_sent_to(address: str, settings: LazySettings) -> None:
    settings.ALLOW_PRIVATE_ENDPOINTS = False
    with pytest.raises(VendorOAuthFault):
        check_endpoint(address)
    with pytest.raises(VendorOAuthFault):
        ask_vendor_server("GET", address)


@pytest.mark.parametrize("name", ["authorization_endpoint", "token_endpoint", "registration_endpoint"])
def test_every_endpoint_is_checked(name: str, settings: LazySettings) -> None:
    settings.ALLOW_PRIVATE_ENDPOINTS = False
    web = Web({AT_PATH: PRM, OAUTH: {**SERVER, name: "https://10.0.0.1/x"}})
    with pytest.raises(VendorOAuthFault):
        discover(MCP, ask=web, check=check_endpoint)
    assert discover(MCP, ask=Web({AT_PATH: PRM, OAUTH: SERVER}), check=check_endpoint).server.issuer == ISSUER


@pytest.mark.parametrize(
    "fault", [guarded_client.ResponseTooLarge(), guarded_client.OutboundTimeout(), guarded_client.BadResponse()]
)
def test_faults_of_the_connection_become_sentences(
    fault: Exception, monkeypatch: pytest.MonkeyPatch, settings: LazySettings
) -> None:
    def fail(*_: Any, **__: Any) -> Response:
        raise fault

    monkeypatch.setattr(guarded_client, "send", fail)
    with pytest.raises(VendorOAuthFault) as refusal:
        ask_vendor_server("GET", "https://auth.example/token")
    assert str(refusal.value.reason).endswith(".")


@pytest.mark.parametrize(
    "address",
    [
        "https://auth.example/authorize#",
        "https://auth.example/authorize\nRefresh: 0",
        "https://auth.example/auth orize",
        "https://auth.example/authorize\\@evil.example",
        "https://auth.example/authorize?client_id=other",
        "https://auth.example/authorize?tenant=1&redirect_uri=https%3A%2F%2Fevil.example",
        "https://auth.example/authorize?state=",
    ],
)
def test_endpoints_that_read_in_two_ways_are_refused(address: str) -> None:
    with pytest.raises(VendorOAuthFault):
        found(Web({AT_PATH: PRM, OAUTH: {**SERVER, "authorization_endpoint": address}}))
    asked = found(Web({AT_PATH: PRM, OAUTH: {**SERVER, "authorization_endpoint": "https://auth.example/a?tenant=1"}}))
    assert asked.server.authorization_endpoint == "https://auth.example/a?tenant=1"


class TestMixUp:
    """A server that sends people to another vendor's sign-in would get a code that is not meant for it."""

    OTHERS = ("https://other.example/mcp", "https://login.other.example/tenant")

    @pytest.mark.parametrize("sign_in", ["https://other.example/authorize", "https://LOGIN.other.example/a?x=1"])
    def test_is_refused(self, sign_in: str) -> None:
        server = {**SERVER, "authorization_endpoint": sign_in}
        with pytest.raises(VendorOAuthFault, match="another vendor"):
            check_not_of_others(found(Web({AT_PATH: PRM, OAUTH: server})).server, self.OTHERS)

    def test_what_is_none(self) -> None:
        elsewhere = {**SERVER, "authorization_endpoint": "https://signin.example/authorize"}
        named = {
            **SERVER,
            "authorization_endpoint": "https://other.example/authorize",
            "authorization_response_iss_parameter_supported": True,
        }
        for server in (SERVER, elsewhere, named):
            check_not_of_others(found(Web({AT_PATH: PRM, OAUTH: server})).server, self.OTHERS)
        # Tenants of one server share its origin.
        check_not_of_others(found(Web({AT_PATH: PRM, OAUTH: SERVER})).server, ["https://auth.example/another-tenant"])


class TestClientOfTheCatalog:
    """A secret that an operator entered goes to the one server that the catalog names."""

    OAUTH = OAuthSettings(issuer=ISSUER, client_id="ours", client_secret_env="ACME_SECRET")

    @pytest.fixture(autouse=True)
    def _secret(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ACME_SECRET", "s3cret")

    def test_to_its_server(self) -> None:
        assert catalog_client(self.OAUTH, ISSUER).secret == "s3cret"
        assert catalog_client(OAuthSettings(client_id="public"), "https://found.example").client_id == "public"

    def test_to_no_other(self) -> None:
        with pytest.raises(VendorOAuthFault):
            catalog_client(self.OAUTH, "https://evil.example")
        with pytest.raises(VendorOAuthFault):
            catalog_client(msgspec.structs.replace(self.OAUTH, issuer=""), ISSUER)

    def test_without_an_id_there_is_none(self) -> None:
        with pytest.raises(VendorOAuthFault):
            catalog_client(
                OAuthSettings(issuer=ISSUER, client_id_env="ACME_ID", client_secret_env="ACME_SECRET"), ISSUER
            )

    @pytest.mark.parametrize(
        ("changed", "where"),
        [
            ({"client_id_env": "ACME_ID"}, "client_id_env"),
            ({"client_id": "", "client_id_env": "acme-id"}, "client_id_env"),
            ({"missing_variables": ("ACME_SECRET",)}, "missing_variables"),
        ],
    )
    def test_faulty_names_of_variables_are_refused(self, changed: dict[str, Any], where: str) -> None:
        vendor = Vendor("acme", "Acme", MCP, oauth=msgspec.structs.replace(self.OAUTH, **changed))
        assert [path for path, _ in catalog_faults([vendor])] == [("vendor", 0, "oauth", where)]

    def test_a_catalog_without_the_server_is_refused(self) -> None:
        vendor = Vendor("acme", "Acme", MCP, oauth=msgspec.structs.replace(self.OAUTH, issuer=""))
        assert [path for path, _ in catalog_faults([vendor])] == [("vendor", 0, "oauth", "issuer")]
        assert not list(catalog_faults([msgspec.structs.replace(vendor, oauth=self.OAUTH)]))


@pytest.mark.parametrize(("value", "is_taken"), [("Bearer {key}", True), ("Bearer static", False)])
def test_an_authorization_header_without_a_field_leaves_no_place_for_a_token(value: str, is_taken: bool) -> None:
    headers = (HeaderTemplate("authorization", value), HeaderTemplate("X-Key", "{key}"))
    fields = (CredentialField("key", "Key", secret=True, required=True),)
    vendor = Vendor("acme", "Acme", MCP, headers=headers, fields=fields, oauth=OAuthSettings())
    assert [path for path, _ in catalog_faults([vendor])] == ([] if is_taken else [("vendor", 0, "oauth")])


def answer(status: int, body: Any) -> Response:
    return Response(status, {}, body if isinstance(body, bytes) else json.dumps(body).encode())


GOOD = {"access_token": "a" * 40, "token_type": "bearer", "expires_in": 3600, "refresh_token": "r" * 40}


def test_tokens_are_read() -> None:
    read = answers.tokens(answer(200, GOOD))
    assert isinstance(read, Tokens)
    assert (read.access_token, read.refresh_token, read.expires_in_s, read.scopes) == ("a" * 40, "r" * 40, 3600.0, None)
    assert "aaaa" not in repr(read)
    plain = answers.tokens(
        answer(200, {"access_token": "x", "token_type": "Bearer", "expires_in": "60", "scope": "a b"})
    )
    assert plain == Tokens("x", "", 60.0, "a b")
    for lifetime in (0, -1, True, "soon", 1e300, None, [], "9" * 40):
        odd = answers.tokens(answer(200, {**GOOD, "expires_in": lifetime}))
        assert isinstance(odd, Tokens)
        assert odd.expires_in_s is None


@pytest.mark.parametrize("status", [400, 401])
def test_a_refusal_has_its_code(status: int) -> None:
    assert answers.tokens(answer(status, {"error": "invalid_grant"})) == Refused("invalid_grant")


def test_nothing_that_was_sent_is_repeated() -> None:
    # It would be shown: a server could name a token as its error or as a scope.
    assert answers.tokens(answer(400, {"error": "rt-0123456789"})) == Refused("unknown_error")
    for echo in (GOOD["access_token"], f"read {GOOD['refresh_token']}"):
        read = answers.tokens(answer(200, {**GOOD, "scope": echo}))
        assert isinstance(read, Tokens)
        assert read.scopes is None
    assert "aaaa" not in repr(answer(200, GOOD))


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, b"{]"),
        (200, b""),
        (200, {"access_token": ""}),
        (200, {**GOOD, "access_token": "line\r\nbreak"}),
        (200, {**GOOD, "access_token": "a" * 20_000}),
        (200, {**GOOD, "token_type": "mac"}),
        (200, {**GOOD, "refresh_token": 7}),
        (400, b"no"),
        (400, {"error": "<script>"}),
        (302, GOOD),
        (429, {"error": "invalid_grant"}),
        (500, {"error": "invalid_grant"}),
        (503, b""),
    ],
)
def test_an_answer_that_says_neither_yes_nor_no_is_a_doubt(status: int, body: Any) -> None:
    with pytest.raises(VendorOAuthFault):
        answers.tokens(answer(status, body))


class TestAccount:
    """The name of the account at the vendor, wherever the vendor tells it. It is shown, and decides nothing."""

    CLAIMS = {"iss": ISSUER, "aud": "ours", "sub": "7", "email": "ana@vendor.example"}
    INFO = "https://auth.example/userinfo"

    def _account(self, web: Web | None = None, scopes: str = "openid", **more: Any) -> str:
        read = answers.tokens(answer(200, {**GOOD, **more}))
        assert isinstance(read, Tokens)
        endpoint = self.INFO if web else ""
        return account_of(
            read, issuer=ISSUER, client_id="ours", userinfo_endpoint=endpoint, scopes=scopes, ask=web or Web({})
        )

    def _token(self, **more: Any) -> str:
        payload = base64.urlsafe_b64encode(json.dumps({**self.CLAIMS, **more}).encode()).rstrip(b"=").decode()
        return f"e30.{payload}.sig"

    def test_in_the_token_answer(self) -> None:
        assert self._account(workspace_name="Acme HQ") == "Acme HQ"
        assert self._account(team={"name": "Night\tshift"}) == "Night shift"
        assert self._account() == ""

    def test_in_an_id_token_of_this_server_for_this_client(self) -> None:
        assert self._account(id_token=self._token()) == "ana@vendor.example"
        for more in ({"iss": "https://evil.example"}, {"aud": "others"}, {"aud": []}, {"email": 7}):
            assert self._account(id_token=self._token(**more)) == ""
        for odd in ("a.b", "a.!!!.c", "a.W10.c"):
            assert self._account(id_token=odd) == ""

    def test_in_the_user_info_of_the_same_person(self) -> None:
        web = Web({self.INFO: {"sub": "7", "email": "leo@vendor.example"}})
        assert self._account(web) == "leo@vendor.example"
        assert self._account(web, scopes="read") == ""
        assert self._account(web, id_token=self._token(email=None, sub="8")) == ""
        assert self._account(Web({self.INFO: answer(500, {})})) == ""

    def test_a_token_is_no_name(self) -> None:
        for secret in ("a" * 40, "r" * 40):
            assert self._account(name=f"x{secret}") == ""
            assert self._account(Web({self.INFO: {"name": secret}})) == ""
        assert self._account(name="x" * 500) == "x" * 200


def test_a_server_without_registration_needs_an_operator() -> None:
    server = answers.authorization_server(answer(200, {**SERVER, "registration_endpoint": ""}), ISSUER)
    with pytest.raises(VendorOAuthFault, match="registered manually"):
        register(server, redirect_uri="https://gateway.example/cb", client_uri="https://gateway.example", ask=Web({}))
