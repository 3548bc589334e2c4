"""Address templates: no value changes scheme, host, path or parameters other than its own."""

from urllib.parse import parse_qsl, unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.catalog.template_grammar import FieldError, TemplateError
from gateway.catalog.url_templates import parse_url, render_url


@pytest.mark.parametrize(
    "template",
    [
        "https://mcp.stripe.com",
        "http://127.0.0.1:9100/mcp",
        "http://[::1]:9100/mcp",
        "http://vendor:8080/mcp/",
        "https://{zone}.make.com/mcp",
        "https://{host}:{port}/mcp",
        "{baseUrl}",
        "{baseUrl}/mcp",
        "{baseUrl}?key={key}",
        "https://a.example/{tenant}/mcp?x={a}-{b}&y=1&z",
    ],
)
def test_addresses_that_are_understood(template: str) -> None:
    assert parse_url(template) == parse_url(template)


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("", "address"),
        ("mcp.example", "address"),
        ("ftp://a.example", "address"),
        ("HTTPS://a.example", "address"),
        ("javascript:alert(1)", "address"),
        ("{scheme}://a.example", "address"),
        ("{baseUrl}.example/mcp", "address"),
        ("https://a.example/mcp#top", "fragment"),
        ("https://user@a.example/", "user name"),
        ("https://user:{token}@a.example/", "user name"),
        ("https://", "host name"),
        ("https:///mcp", "host name"),
        ("https://-a.example/", "host name"),
        ("https://a_b.example/", "host name"),
        ("https://ex\u00e4mple.de/", "host name"),
        ("https://[::zz]/", "host name"),
        ("https://[fe80::1%25eth0]/", "host name"),
        ("https://a.example:0/", "port"),
        ("https://a.example:70000/", "port"),
        ("https://a.example:8{x}/", "port"),
        ("https://a.example:/mcp", "port"),
        ("https://a.example/a b", "path"),
        ("https://a.example/a\\b", "path"),
        ("https://a.example/../b", "path"),
        ("https://a.example/%2E%2e/b", "path"),
        ("https://a.example/?a=%zz", "query"),
        ("https://a.example/?a=<", "query"),
        ("https://a.example/{b64:a:b}", "headers"),
        ("https://a.example/{a", "brace"),
    ],
)
def test_addresses_that_are_refused(template: str, why: str) -> None:
    with pytest.raises(TemplateError, match=why):
        parse_url(template)


def test_only_query_fields_may_be_left_out() -> None:
    assert parse_url("https://{a}.x.example:{b}/{c}?d={d}").mandatory == ("a", "b", "c")
    assert parse_url("{base}/{c}?d={d}").mandatory == ("base", "c")


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        ("https://rmm.example", "https://rmm.example/mcp"),
        ("https://rmm.example/", "https://rmm.example/mcp"),
        ("HTTPS://RMM.example:8443", "https://rmm.example:8443/mcp"),
        ("http://10.0.0.5:8080", "http://10.0.0.5:8080/mcp"),
        ("http://[2001:db8::1]:8080", "http://[2001:db8::1]:8080/mcp"),
        ("http://[2001:db8::1]", "http://[2001:db8::1]/mcp"),
        ("https://host.example/tools/rmm//", "https://host.example/tools/rmm/mcp"),
    ],
)
def test_a_base_is_scheme_and_host_and_maybe_a_path(base: str, expected: str) -> None:
    assert render_url("{baseUrl}/mcp", {"baseUrl": base}) == expected


@pytest.mark.parametrize(
    "base",
    [
        "",
        "rmm.example",
        "//rmm.example",
        "file:///etc/passwd",
        "gopher://x",
        "javascript:alert(1)",
        "https://",
        "https://user:pass@rmm.example",
        "https://rmm.example@evil.example",
        "https://rmm.example?x=1",
        "https://rmm.example#x",
        "https://rmm.example/a b",
        "https://rmm.example\\@evil.example",
        "https://rmm.example:0",
        "https://rmm.example:99999",
        "https://rmm.example:٣",
        "https://rmm.example:",
        "https://rmm .example",
        "https://rmm.example/../x",
        "https://rmm.example/%2e%2e/x",
        "https://rmm.example\r\nHost: evil",
        "https://r\u00e4mm.example",
        "https://[::1%25lo]",
    ],
)
def test_other_bases_are_refused_and_not_repeated(base: str) -> None:
    with pytest.raises(FieldError) as caught:
        render_url("{baseUrl}/mcp", {"baseUrl": base})
    assert caught.value.field == "baseUrl"
    assert not base or base not in str(caught.value)


@pytest.mark.parametrize("zone", ["eu2", "EU2", "a-b", "us1.celonis", "x" * 63])
def test_host_parts_that_fit(zone: str) -> None:
    assert render_url("https://{zone}.make.com/mcp", {"zone": zone}) == f"https://{zone.lower()}.make.com/mcp"


@pytest.mark.parametrize(
    "zone",
    [
        "",
        ".",
        "a.",
        ".a",
        "a..b",
        "-a",
        "a-",
        "a_b",
        "evil.example/",
        "evil.example#",
        "evil.example?",
        "a@b",
        "a:1",
        "a b",
        "a%2f",
        "ä",
        "x" * 64,
        "a\n",
        "[::1]",
        "a\\b",
    ],
)
def test_host_parts_that_would_lead_elsewhere_are_refused(zone: str) -> None:
    with pytest.raises(FieldError, match=r"^zone: "):
        render_url("https://{zone}.make.com/mcp", {"zone": zone})


def test_a_host_name_that_grows_too_long_is_refused() -> None:
    with pytest.raises(FieldError, match="too long"):
        render_url("https://pre{zone}.make.com/mcp", {"zone": "x" * 63})
    with pytest.raises(FieldError, match="too long"):
        render_url("https://{zone}.make.com/mcp", {"zone": ".".join(["x" * 61] * 4)})


def test_a_port_is_a_number() -> None:
    assert render_url("http://h.example:{port}/mcp", {"port": "8080"}) == "http://h.example:8080/mcp"
    for bad in ("", "0", "65536", "80a", "80/x", "٣", "-1", "8" * 5000):
        with pytest.raises(FieldError, match=r"^port: must be a port number$"):
            render_url("http://h.example:{port}/mcp", {"port": bad})


def test_path_values_stay_in_their_segment() -> None:
    assert render_url("https://h.example/{t}/mcp", {"t": "a/b?c#d"}) == "https://h.example/a%2Fb%3Fc%23d/mcp"
    assert render_url("https://h.example/.{t}/mcp", {"t": "x"}) == "https://h.example/.x/mcp"
    for bad in (".", "..", ""):
        with pytest.raises(FieldError, match=r"^t: "):
            render_url("https://h.example/{t}/mcp", {"t": bad})
    with pytest.raises(FieldError, match=r"^t: "):
        render_url("https://h.example/.{t}/mcp", {"t": "."})


def test_query_parameters_without_a_value_are_left_out() -> None:
    template = "https://h.example/mcp?a={a}&b={b}&fixed=1"
    assert render_url(template, {"a": "", "b": "x&y=z"}) == "https://h.example/mcp?b=x%26y%3Dz&fixed=1"
    assert render_url("https://h.example/mcp?a={a}", {"a": ""}) == "https://h.example/mcp"


def test_a_missing_field_is_refused() -> None:
    with pytest.raises(FieldError, match="a: is missing"):
        render_url("https://h.example/mcp?a={a}", {})


def test_a_lone_surrogate_is_refused() -> None:
    with pytest.raises(FieldError, match="q: has characters") as caught:
        render_url("https://h.example/mcp?q={q}", {"q": "secret\ud800"})
    assert caught.value.__suppress_context__


@given(zone=st.text(max_size=20), tenant=st.text(max_size=20), ref=st.text(max_size=20))
def test_no_value_changes_what_the_address_means(zone: str, tenant: str, ref: str) -> None:
    try:
        url = render_url(
            "https://{zone}.v.example:8443/t/{tenant}/mcp?ref={ref}&k=1", {"zone": zone, "tenant": tenant, "ref": ref}
        )
    except FieldError:
        return
    parts = urlsplit(url)
    assert (parts.scheme, parts.port, parts.username, parts.fragment) == ("https", 8443, None, "")
    assert parts.hostname == f"{zone.lower()}.v.example"
    assert [unquote(part) for part in parts.path.split("/")] == ["", "t", tenant, "mcp"]
    assert parse_qsl(parts.query, keep_blank_values=True) == ([("ref", ref)] if ref else []) + [("k", "1")]
    assert url.isascii()


@given(st.text(alphabet="https:/@.?#[]%\\a1-", max_size=30))
def test_no_base_smuggles_a_host(base: str) -> None:
    try:
        url = render_url("{base}/mcp", {"base": base})
    except FieldError:
        return
    parts = urlsplit(url)
    assert parts.scheme in {"http", "https"}
    assert parts.hostname
    assert (parts.username, parts.password, parts.query, parts.fragment) == (None, None, "", "")
    assert parts.path.endswith("/mcp")
