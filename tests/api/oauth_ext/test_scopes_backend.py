"""The scopes as the library sees them."""

from __future__ import annotations

import pytest
from oauth2_provider.scopes import get_scopes_backend
from pytest_django import DjangoAssertNumQueries

from oauth_ext import scopes_backend
from oauth_ext.models import AccessToken


def test_every_vendor_has_a_described_scope(vendor: str) -> None:
    backend = get_scopes_backend()
    assert isinstance(backend, scopes_backend.VendorScopes)
    described = backend.get_all_scopes()
    assert set(described) == {"mcp", "mcp:all", "mcp:acme"}
    assert described["mcp:acme"] == "Use the tools of Acme"
    assert set(backend.get_available_scopes()) == set(described)
    assert set(backend.get_default_scopes()) <= set(described)
    assert AccessToken(scope="mcp:acme").scopes == {"mcp:acme": "Use the tools of Acme"}


@pytest.mark.parametrize(
    ("wanted", "exist", "queries"),
    [
        ({"mcp", "mcp:all"}, True, 0),
        ({"mcp:acme", "mcp"}, True, 1),
        ({"mcp:acme", "mcp:nope"}, False, 1),
        ({"mcp:acme", "openid"}, False, 0),
    ],
)
def test_all_exist(
    vendor: str, wanted: set[str], exist: bool, queries: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(queries):
        assert scopes_backend.all_exist(wanted) is exist
