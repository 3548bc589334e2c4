"""GET /api/vendors."""

from __future__ import annotations

import pytest

from tests.factories.api import Api
from tests.factories.vendor_oauth import load_oauth_vendor


@pytest.mark.usefixtures("vendors")
def test_anybody_signed_in_sees_the_catalog(api: Api) -> None:
    found = {each["slug"]: each for each in api.get("stranger", "/vendors")}
    assert found["acme"] == {
        "slug": "acme",
        "displayName": "Acme",
        "category": "Other",
        "docsUrl": "https://vendor.example/docs",
        "fields": [{"name": "apiKey", "label": "API key", "secret": True, "required": True, "help": "", "options": []}],
        "signIn": [],
    }
    assert set(found) == {"acme", "globex"}
    load_oauth_vendor("https://signin.example/mcp", 'connections = ["person"]')
    by_sign_in = {each["slug"]: each for each in api.get("stranger", "/vendors")}["signin"]
    assert (by_sign_in["fields"], by_sign_in["signIn"]) == ([], ["person"])
    assert api.refused("nobody", "GET", "/vendors") == (401, "unauthenticated")
