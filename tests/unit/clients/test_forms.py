"""Pages are read as a browser reads them, and their policies as strictly as Chromium holds to them."""

from __future__ import annotations

import pytest

from tests.clients.forms import Page, policy_allows_form

CONSENT = """
<nav><form action="/signout" method="post"><input type="hidden" name="csrf" value="n"><button>Sign out</button></form>
<a href="/a?b=1&amp;c=2">elsewhere</a></nav>
<form method="POST">
  <input type="hidden" name="csrf" value="&lt;t&gt;">
  <input name="typed" value="as it was"><input name="off" value="x" disabled>
  <input type="checkbox" name="vendor" value="acme" checked><input type="checkbox" name="vendor" value="time" checked>
  <input type="checkbox" name="vendor" value="unwanted"><input type="radio" name="how" value="a">
  <input type="radio" name="how" value="b" checked>
  <select name="organization"><option value="1">One</option><option value="2" selected>Two</option></select>
  <select name="first"><option value="f">First</option><option value="s">Second</option></select>
  <textarea name="note">said</textarea>
  <button name="decision" value="deny">Cancel</button>
  <button name="decision" value="allow"><svg></svg> Allow
  </button><button type="button">Copy</button>
</form>
"""


def test_a_form_sends_what_a_browser_sends() -> None:
    page = Page(CONSENT)
    found = page.find("Allow")
    assert found is not None
    form, button = found
    assert (form.action, form.method) == ("", "post")
    assert form.submitted(button, {"typed": "now this"}) == {
        "csrf": ["<t>"],
        "vendor": ["acme", "time"],
        "how": ["b"],
        "organization": ["2"],
        "first": ["f"],
        "note": ["said"],
        "typed": ["now this"],
        "decision": ["allow"],
    }


def test_only_what_submits_is_a_button() -> None:
    page = Page(CONSENT)
    assert page.labels() == ["Sign out", "Cancel", "Allow"]
    assert page.find("Copy") is None
    assert page.links == ["/a?b=1&c=2"]


@pytest.mark.parametrize(
    ("policy", "target", "is_allowed"),
    [
        ("default-src 'none'", "http://127.0.0.1:5000/cb", True),
        ("form-action 'none'", "https://gateway.example/x", False),
        ("form-action 'self'", "https://gateway.example/x", True),
        ("form-action 'self'", "https://gateway.example:8443/x", False),
        ("default-src 'none'; form-action 'self'", "http://127.0.0.1:5000/cb", False),
        ("form-action 'self' http://127.0.0.1:5000", "http://127.0.0.1:5000/cb", True),
        ("form-action 'self' http://127.0.0.1:5000", "http://127.0.0.1:5001/cb", False),
        ("form-action 'self' http://127.0.0.1:*", "http://127.0.0.1:5001/cb", True),
        ("form-action 'self' http://localhost:*", "http://127.0.0.1:5001/cb", False),
        ("form-action https://app.example", "https://app.example/cb", True),
        ("form-action https://app.example", "http://app.example/cb", False),
        ("form-action cursor:", "cursor://anysphere.cursor-mcp/oauth/callback", True),
        ("form-action https:", "cursor://anysphere.cursor-mcp/oauth/callback", False),
        ("form-action *", "https://app.example/cb", True),
        ("form-action *", "cursor://anysphere.cursor-mcp/oauth/callback", False),
    ],
)
def test_where_a_form_may_go(policy: str, target: str, is_allowed: bool) -> None:
    assert policy_allows_form(policy, "https://gateway.example/oauth/authorize", target) is is_allowed
