"""Redirect addresses: which may be registered, which match, how they are shown."""

from __future__ import annotations

import pytest

from oauth_ext import redirect_uris
from oauth_ext.redirect_uris import BadRedirectUri, registered_as, same

# Addresses that clients of today register: protocol.md B.3.
SEEN = [
    "https://claude.ai/api/mcp/auth_callback",
    "https://claude.com/api/mcp/auth_callback",
    "https://chatgpt.com/connector_platform_oauth_redirect",
    "https://chatgpt.com/connector/oauth/aB-3_x",
    "https://vscode.dev/redirect",
    "https://insiders.vscode.dev/redirect",
    "http://127.0.0.1/",
    "http://127.0.0.1:33418/",
    "http://127.0.0.1:33418",
    "http://localhost:3000/callback",
    "http://localhost:33418/oauth/callback?x=1",
    "http://[::1]:9000/cb",
    "cursor://anysphere.cursor-mcp/oauth/callback",
    "vscode://vscode.github-authentication/did-authenticate",
    "vscode-insiders://redirect",
    "claude://oauth",
    "vscodium://x.y/cb",
    "windsurf://codeium.windsurf/cb",
    "zed://cb",
    "com.example.app:/oauth2redirect",
    "https://app.example:8443/cb?tenant=a&b=%20",
]


@pytest.mark.parametrize("uri", SEEN)
def test_what_clients_register_is_accepted(uri: str) -> None:
    assert redirect_uris.check(uri) == uri
    assert registered_as([uri], uri)


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "/callback",
        "callback",
        "//app.example/cb",
        "http://evil.example/cb",
        "http://127.0.0.1.evil.example/cb",
        "http://127.0.0.2/cb",
        "http://localhost.evil.example/cb",
        "http://localhost@evil.example/cb",
        "http://LOCALHOST:1/cb",
        "http://0.0.0.0/cb",
        "http://[::2]/cb",
        "http://127.1/cb",
        "http://127.0.0.1:0/cb",
        "http://127.0.0.1:65536/cb",
        "http://127.0.0.1:99999999/cb",
        "https://",
        "https:///cb",
        "https://claude.ai&x.evil.example/cb",
        "https://claude.ai,evil.example/cb",
        "https://claude.ai;evil.example/cb",
        "https://claude%2eai/cb",
        "https://claude.ai=.evil.example/cb",
        "https://[::1]x/cb",
        f"https://{'a' * 252}.example/cb",
        f"app.example://{'a' * 251}/cb",
        "https:app.example",
        "https://app.example/cb#fragment",
        "https://app.example/cb#",
        "https://user@app.example/cb",
        "https://user:secret@app.example/cb",
        "https://@app.example/cb",
        "https://*.app.example/cb",
        "https://app.example/*",
        "https://app.example:port/cb",
        "https://app.example/a b",
        "https://app.example/a\nb",
        "https://app.example/a\\b",
        'https://app.example/"onload',
        "https://app.example/<script>",
        "https://äpp.example/cb",
        "https://[::1/cb",
        "HTTPS://app.example/cb",
        "javascript:alert(1)",
        "javascript://app.example/%0aalert(1)",
        "JavaScript:alert(1)",
        "data:text/html,hello",
        "data://host/x",
        "file:///etc/passwd",
        "vbscript:x",
        "blob:https://app.example/1",
        "view-source://app.example",
        "intent://scan/",
        "mailto:a@b.example",
        "urn:ietf:wg:oauth:2.0:oob",
        "myapp:callback",
        "myapp://callback",
        "ms-word://ofe/x",
        "ms-msdt:/id",
        "ms-settings.example://x",
        "search-ms:query=x",
        "search://x",
        "shell://x",
        "smb://evil.example/share",
        "callto://x",
        "facetime://x",
        "facetime-audio://x",
        "itms-services://?action=download-manifest",
        "itms-apps://x",
        "x-apple.systempreferences:com.apple.preference",
        "microsoft.windows.camera:",
        "slack://open",
        "tel://1",
        "ssh://evil.example",
        "x" * 2_001,
        f"https://app.example/{'x' * 2_000}",
        None,
        7,
        ["https://app.example/cb"],
    ],
)
def test_what_is_refused_and_not_repeated(uri: object) -> None:
    with pytest.raises(BadRedirectUri) as refusal:
        redirect_uris.check(uri)
    assert refusal.value.reason
    assert not isinstance(uri, str) or len(uri) < 12 or uri not in refusal.value.reason


@pytest.mark.parametrize(
    ("registered", "sent"),
    [
        ("http://127.0.0.1/cb", "http://127.0.0.1:51000/cb"),
        ("http://127.0.0.1:33418/", "http://127.0.0.1:40000"),
        ("http://127.0.0.1:33418", "http://127.0.0.1:33418/"),
        ("http://localhost:3000/callback", "http://localhost:51234/callback"),
        ("http://localhost/cb?a=1", "http://localhost:8/cb?a=1"),
        ("http://[::1]/cb", "http://[::1]:8/cb"),
        ("http://127.0.0.1?a=1", "http://127.0.0.1:5/?a=1"),
    ],
)
def test_only_the_port_of_a_loopback_address_is_free(registered: str, sent: str) -> None:
    assert registered_as([registered], sent)
    assert registered_as(["https://other.example/cb", registered], sent)


HTTPS = "https://app.example/cb"
LOOPBACK = "http://127.0.0.1:5000/cb"


@pytest.mark.parametrize(
    ("registered", "sent"),
    [
        (HTTPS, f"{HTTPS}?x=1"),
        (HTTPS, f"{HTTPS};p"),
        (HTTPS, f"{HTTPS}/"),
        (HTTPS, f"{HTTPS}#"),
        (HTTPS, f"{HTTPS}#f"),
        (HTTPS, "https://app.example:443/cb"),
        (HTTPS, "https://app.example:8443/cb"),
        (HTTPS, "https://user@app.example/cb"),
        (HTTPS, "https://app.example/CB"),
        (HTTPS, "https://APP.example/cb"),
        (HTTPS, "https://app.example./cb"),
        (HTTPS, "https://app.example/x/../cb"),
        (HTTPS, "https://app.example//cb"),
        (HTTPS, "https://app.example/c%62"),
        (HTTPS, "https://app.example/cb "),
        (HTTPS, "http://app.example/cb"),
        (HTTPS, "https://evil.example/cb"),
        (HTTPS, "https://app.example.evil.example/cb"),
        (HTTPS, ""),
        (LOOPBACK, "http://127.0.0.1:5001/other"),
        (LOOPBACK, "http://127.0.0.1:5001/cb?x=1"),
        (LOOPBACK, "http://127.0.0.1:5001/cb#f"),
        (LOOPBACK, "http://127.0.0.1:5001/cb;p"),
        (LOOPBACK, "http://localhost:5001/cb"),
        (LOOPBACK, "http://[::1]:5001/cb"),
        (LOOPBACK, "https://127.0.0.1:5001/cb"),
        (LOOPBACK, "http://127.0.0.1:5001@evil.example/cb"),
        (LOOPBACK, "http://evil@127.0.0.1:5001/cb"),
        (LOOPBACK, "http://127.0.0.1:0/cb"),
        (LOOPBACK, "http://127.0.0.1:5001\n/cb"),
        (LOOPBACK, "http://127.0.0.1.evil.example/cb"),
        ("https://127.0.0.1:5000/cb", "https://127.0.0.1:5001/cb"),
        ("cursor://app/cb", "cursor://app/cb2"),
        ("cursor://app:1/cb", "cursor://app:2/cb"),
    ],
)
def test_everything_else_must_match_exactly(registered: str, sent: str) -> None:
    assert registered_as([registered], registered)
    assert not registered_as([registered], sent)


def test_at_the_token_endpoint_the_port_counts_too() -> None:
    assert same("http://127.0.0.1:5000", "http://127.0.0.1:5000/")
    assert same(HTTPS, HTTPS)
    assert not same("http://127.0.0.1:5000/", "http://127.0.0.1:5001/")
    assert not same(HTTPS, f"{HTTPS}/")


@pytest.mark.parametrize(
    ("uri", "shown", "on_the_computer", "loopback"),
    [
        ("https://claude.ai/api/mcp/auth_callback", "claude.ai", False, False),
        ("https://app.example:8443/cb", "app.example:8443", False, False),
        ("http://127.0.0.1:5000/cb", "127.0.0.1", True, True),
        ("http://localhost/cb", "localhost", True, True),
        ("cursor://anysphere.cursor-mcp/oauth/callback", "cursor://anysphere.cursor-mcp", True, False),
        ("com.example.app:/cb", "com.example.app:", True, False),
    ],
)
def test_how_it_is_shown(uri: str, shown: str, on_the_computer: bool, loopback: bool) -> None:
    assert redirect_uris.shown_host(uri) == shown
    assert redirect_uris.stays_on_the_computer(uri) is on_the_computer
    assert redirect_uris.is_loopback(uri) is loopback


def test_where_the_consent_form_may_lead() -> None:
    assert redirect_uris.form_action_sources("https://claude.ai/cb") == ["https:"]
    assert redirect_uris.form_action_sources("http://127.0.0.1:5000/cb") == ["https:", "http://127.0.0.1:5000"]
    assert redirect_uris.form_action_sources("http://[::1]:5000/cb") == ["https:", "http:"]
    assert redirect_uris.form_action_sources("cursor://app/cb") == ["https:", "cursor:"]


def test_parameters_are_added_and_escaped() -> None:
    assert redirect_uris.with_parameters(HTTPS, {"code": "a", "state": "x y&z#"}) == f"{HTTPS}?code=a&state=x+y%26z%23"
    assert redirect_uris.with_parameters(f"{HTTPS}?a=1", {"iss": "http://b"}) == f"{HTTPS}?a=1&iss=http%3A%2F%2Fb"
