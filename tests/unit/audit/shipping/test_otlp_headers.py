from __future__ import annotations

import pytest

from audit.shipping.platforms.otlp_headers import InvalidHeaders, parse_headers


@pytest.mark.parametrize(
    ("text", "headers"),
    [
        ("", {}),
        ("\n \r\n,", {}),
        ("Authorization: Bearer a:b=c,d", {"Authorization": "Bearer a:b=c,d"}),
        ("api-key: 1%20\r\nX-Scope-OrgID : team", {"api-key": "1%20", "X-Scope-OrgID": "team"}),
        ("api-key=abc==, x=y%20z%2C", {"api-key": "abc==", "x": "y z,"}),
        ("Authorization=Basic dXNlcjpw", {"Authorization": "Basic dXNlcjpw"}),
        ("Authorization=Basic%20a:b", {"Authorization": "Basic a:b"}),
        ("a=1\nb: 2", {"a": "1", "b": "2"}),
        ("plus=a+b", {"plus": "a+b"}),
        ("k%0Aey=1", {"k%0Aey": "1"}),  # names are not decoded
    ],
)
def test_both_forms(text: str, headers: dict[str, str]) -> None:
    assert parse_headers(text) == headers


@pytest.mark.parametrize(
    "name",
    [
        *("Host", "Content-Length", "content-type", "Content-Encoding", "Accept-Encoding", "Expect"),
        *("Connection", "Keep-Alive", "TE", "Trailer", "Transfer-Encoding", "UPGRADE"),
        *("Proxy-Authorization", "proxy-connection", "Proxy-Authenticate"),
    ],
)
@pytest.mark.parametrize("form", ["{}: x", "{}=x", "ok=1,{}=x"])
def test_headers_of_the_connection_and_of_the_body_are_refused(name: str, form: str) -> None:
    with pytest.raises(InvalidHeaders, match=f"The header {name} is set by the gateway."):
        parse_headers(form.format(name))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("key=a%0d%0aHost: evil", "The value of key must be one line"),
        ("key=a%0Ab", "The value of key must be one line"),
        ("key=a%00", "The value of key must be one line"),
        ("key: a\rb", "The value of key must be one line"),
        ("key: s\u00e9cret", "The value of key must be one line"),
        ("key:", "The value of key must be one line"),
        ("key", "The value of key must be one line"),
        ("k\u00e9y=1", "Write each header as"),
        ("a b: 1", "Write each header as"),
        (": 1", "Write each header as"),
        ("=1", "Write each header as"),
        ("{}=1", "Write each header as"),
        ("a=1,A=2", "The header A appears twice"),
        ("a: 1\na=2", "The header a appears twice"),
        (",".join(f"h{number}=1" for number in range(21)), "At most 20 headers"),
        ("a: " + "x" * 100_000, "at most 8192 characters"),
    ],
)
def test_refusals(text: str, sentence: str) -> None:
    with pytest.raises(InvalidHeaders, match=sentence) as refusal:
        parse_headers(text)
    assert "cret" not in str(refusal.value)
