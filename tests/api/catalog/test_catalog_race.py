"""Two processes that load at the same moment end with one catalog."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from django.db.models import QuerySet

from gateway.catalog.models import VendorRow
from gateway.catalog.parsing import CatalogErrors
from gateway.catalog.services import LoadResult
from tests.factories.catalog_text import load_catalog

TEXT = '[[vendor]]\nslug = "acme"\nname = "Acme"\nurl = "https://acme.example/mcp"\n'
RIVAL = '[[vendor]]\nslug = "rival"\nname = "Rival"\nurl = "https://rival.example/mcp"\ntool_prefix = "acme"\n'


class BlindAtFirst:
    """Hides the rows from the first `blind` looks: they were committed by another process a moment later."""

    def __init__(self, blind: int) -> None:
        self.blind = blind

    def __call__(self) -> QuerySet[VendorRow]:
        self.blind -= 1
        return VendorRow.objects.none() if self.blind >= 0 else VendorRow.objects.all()


@pytest.mark.django_db
def test_the_same_file_at_the_same_moment_ends_in_one_row() -> None:
    load_catalog(TEXT, "acme.toml")
    with patch.object(VendorRow.objects, "select_for_update", BlindAtFirst(1)):
        assert load_catalog(TEXT.replace("Acme", "Newer"), "acme.toml") == LoadResult(("acme",), (), ())
    assert VendorRow.objects.get().definition["name"] == "Newer"


@pytest.mark.django_db
def test_the_loser_of_a_race_for_a_prefix_learns_whose_it_is() -> None:
    load_catalog(TEXT, "acme.toml")
    with (
        patch.object(VendorRow.objects, "select_for_update", BlindAtFirst(1)),
        pytest.raises(CatalogErrors, match=r'line 5, .*"acme" is already the prefix of the vendor acme'),
    ):
        load_catalog(RIVAL, "rival.toml")
    assert VendorRow.objects.get().slug == "acme"
