"""The catalog in memory: order, look-up, and routing by the longest prefix."""

import pytest

from gateway.catalog.registry import Catalog
from gateway.catalog.vendor import Vendor


def make_vendor(slug: str, name: str = "", prefix: str = "") -> Vendor:
    return Vendor(
        slug=slug, name=name or slug, url=f"https://{slug}.example/mcp", tool_prefix=prefix or slug.replace("-", "_")
    )


CATALOG = Catalog([make_vendor("zeta", "alpha"), make_vendor("datto", "Beta"), make_vendor("datto-rmm", "beta")])


def test_vendors_are_sorted_by_name_without_case() -> None:
    assert [vendor.slug for vendor in CATALOG.all()] == ["zeta", "datto", "datto-rmm"]
    assert list(CATALOG) == list(CATALOG.all())


def test_look_up_by_slug() -> None:
    assert CATALOG.get("datto") is CATALOG.by_slug["datto"]
    assert CATALOG.get("nobody") is None
    assert "datto" in CATALOG
    assert "nobody" not in CATALOG
    assert len(CATALOG) == 3


@pytest.mark.parametrize(
    ("tool", "slug"),
    [
        ("datto_list", "datto"),
        ("datto_rmm_list", "datto-rmm"),
        ("datto_rmm__list", "datto-rmm"),
        ("datto__rmm_list", "datto"),
        ("datto_rmmx_list", "datto"),
        ("datto_", "datto"),
        ("zeta_a_b_c", "zeta"),
    ],
)
def test_the_longest_prefix_comes_first(tool: str, slug: str) -> None:
    assert next(CATALOG.prefixed(tool)).slug == slug


def test_shorter_prefixes_follow() -> None:
    assert [vendor.slug for vendor in CATALOG.prefixed("datto_rmm_list")] == ["datto-rmm", "datto"]


@pytest.mark.parametrize("tool", ["", "_", "datto", "dattox_list", "DATTO_list", "_datto_list", "x_datto_list", "list"])
def test_names_without_a_known_prefix_have_no_vendor(tool: str) -> None:
    assert list(CATALOG.prefixed(tool)) == []


def test_a_prefix_of_full_length_is_found_and_long_names_cost_nothing() -> None:
    longest = "p" * 31
    catalog = Catalog([make_vendor("p", prefix=longest)])
    assert list(catalog.prefixed(f"{longest}_tool")) == [catalog.get("p")]
    assert list(catalog.prefixed(f"{longest}p_tool")) == []
    assert list(catalog.prefixed("a_" * 100_000)) == []


def test_a_catalog_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        CATALOG.by_slug["new"] = make_vendor("new")  # type: ignore[index]
